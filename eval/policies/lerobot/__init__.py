"""LeRobot checkpoints as policies."""
