"""Pictures of a scene, as it is or as a visual probe shows it."""
