"""Recorded rollouts as files: their schema, finished shards, LeRobot datasets, simulator states."""
