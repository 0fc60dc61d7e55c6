"""Grading: notebooks of strangers are judged in a process that their code cannot reach."""
