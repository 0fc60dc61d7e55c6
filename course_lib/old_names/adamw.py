"""The name of 0.2.0 for `course_lib.optimizers`."""

from course_lib.optimizers import *  # noqa: F403
