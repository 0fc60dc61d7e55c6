"""Files of the course and of the learner: notebooks, workspaces, the map of the lessons."""
