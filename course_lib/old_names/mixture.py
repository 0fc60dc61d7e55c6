"""The name of 0.2.0 for `course_lib.scaling`."""

from course_lib.scaling import *  # noqa: F403
