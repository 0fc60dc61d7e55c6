"""The name of 0.2.0 for `course_lib.assistant`."""

from course_lib.assistant import *  # noqa: F403
