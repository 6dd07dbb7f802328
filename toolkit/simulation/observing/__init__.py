"""What is measured in a scene: facts, targets, objects, contacts and forces."""
