"""The review of cases: the ledger of verdicts, and the sheet that a person reads."""
