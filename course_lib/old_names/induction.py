"""The name of 0.2.0 for `course_lib.add_norm`."""

from course_lib.add_norm import *  # noqa: F403
