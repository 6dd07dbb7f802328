"""Language probes as a config of the tasks dataset, and pictures of the visual ones."""
