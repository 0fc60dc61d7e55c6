"""What came in: files, whose they are, when, and what was judged before."""
