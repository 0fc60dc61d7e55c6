"""The name of 0.2.0 for `course_lib.transformer`."""

from course_lib.transformer import *  # noqa: F403
