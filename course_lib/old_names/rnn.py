"""The name of 0.2.0 for `course_lib.before_attention`."""

from course_lib.before_attention import *  # noqa: F403
