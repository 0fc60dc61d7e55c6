"""Exercises: this folder's files are the engine, its folders hold one file an exercise."""

from course_lib.exercises.notebook import check, hint, mine, reveal, solution, verdict

__all__ = ["check", "hint", "mine", "reveal", "solution", "verdict"]
