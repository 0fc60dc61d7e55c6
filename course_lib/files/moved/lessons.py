"""Moved: notebooks handed out before version 0.2 import it from here."""

from course_lib.files.course_map import *  # noqa: F403
