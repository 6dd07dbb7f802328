"""One control step: controller, constraint solver and what moves by itself, compiled."""
