"""Language probes as a config of the tasks data set, and pictures of the visual ones."""
