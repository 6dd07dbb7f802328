"""Instructions: plans, the words for what is in the scenes, English from plans and plans from English."""
