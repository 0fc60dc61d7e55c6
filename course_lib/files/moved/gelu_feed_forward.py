"""Moved: notebooks handed out before version 0.2 import it from here."""

from course_lib.feed_forward import gelu_feed_forward  # noqa: F401
