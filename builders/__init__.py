"""Records in, data sets out: the tasks release, rollouts in LeRobot's format, cards."""
