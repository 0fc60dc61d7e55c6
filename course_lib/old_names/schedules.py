"""The name of 0.2.0 for `course_lib.translation`."""

from course_lib.translation import *  # noqa: F403
