"""A small policy learned from scripted demonstrations: what it sees, its network, how it is run."""
