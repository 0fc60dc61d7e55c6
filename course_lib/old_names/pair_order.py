"""The name of 0.2.0 for `course_lib.real_models`."""

from course_lib.real_models import *  # noqa: F403
