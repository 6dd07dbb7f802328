"""Records in, datasets out: the tasks release, rollouts in LeRobot's format, cards."""
