"""The name of 0.2.0 for `course_lib.multi_head`."""

from course_lib.multi_head import *  # noqa: F403
