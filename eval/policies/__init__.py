"""Policies: the interface, and a folder for each kind: scripted, learned, from LeRobot, remote, and served by us."""
