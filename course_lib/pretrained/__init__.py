"""Real trained weights, read into the course's own modules."""
