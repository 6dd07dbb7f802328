"""How the learned example is trained: demonstrations, training, recipe."""
