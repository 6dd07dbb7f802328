"""From recordings to measured pairs: pairing, measures, one row a pair."""
