"""The course's tests. `python -m tests` runs them as CI does at each push, `--weekly` the rest.

Where COURSE_WEEKLY=1 is set, the same tests take more seeds, more answers and more pages.
"""

import os

WEEKLY = os.environ.get("COURSE_WEEKLY") == "1"
TENTH = slice(None, None, 1 if WEEKLY else 10)  # of what is much alike: all of it, or each tenth
