"""Moved: notebooks handed out before version 0.2 import it from here."""

from course_lib.instruments.position_schemes import *  # noqa: F403
