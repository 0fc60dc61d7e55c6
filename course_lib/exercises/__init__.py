"""Exercises, one file each, in a folder for each topic; and what notebooks call to answer them."""

from course_lib.checking.notebook.check import (
    check,
    hint,
    mine,
    my_transformer,
    reveal,
    solution,
    verdict,
)

__all__ = ["check", "hint", "mine", "my_transformer", "reveal", "solution", "verdict"]
