"""The name of 0.2.0 for `course_lib.language_model`."""

from course_lib.language_model import *  # noqa: F403
