"""Calibrated agents with known answers, and the motion skills they are made of."""
