"""The X-ray: a look inside any model made of the course's parts, while it reads a sentence."""

from course_lib.xray.explorer import XRay, xray

__all__ = ["XRay", "xray"]
