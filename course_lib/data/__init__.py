"""Where texts come from, and how they become batches."""

from course_lib.data.needs import needs

__all__ = ["needs"]
