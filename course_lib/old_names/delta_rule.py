"""The name of 0.2.0 for `course_lib.beyond`."""

from course_lib.beyond import *  # noqa: F403
