"""The folder of a run: what may go into it, who works on what, and how its dataset is finished, extended and merged."""
