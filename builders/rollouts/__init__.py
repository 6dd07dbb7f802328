"""Recorded rollouts as files: their schema, finished shards, LeRobot data sets, simulator states."""
