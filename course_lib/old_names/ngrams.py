"""The name of 0.2.0 for `course_lib.corpus`."""

from course_lib.corpus import *  # noqa: F403
