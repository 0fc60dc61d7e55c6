"""A learner's notebook and workspace: which cell is the answer, what is kept, how far it is."""
