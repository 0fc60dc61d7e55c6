"""Exercises, one file each, in a folder for each topic; and what notebooks call to answer them."""

from course_lib.checking.notebook.check import check, hint, solution, verdict
from course_lib.checking.notebook.mine import mine
from course_lib.checking.notebook.one_page import my_transformer
from course_lib.checking.notebook.predictions import reveal

__all__ = ["check", "hint", "mine", "my_transformer", "reveal", "solution", "verdict"]
