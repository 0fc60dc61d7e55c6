"""`course grade` with two clocks: `python -m tests.grading.two_clocks grade SUBMISSIONS ...`.

An answer that goes on for ever is ended after a second, since nothing else can come of it; every
other one has a minute, so that no honest answer fails on a busy machine. Which are which, hostile
answers say themselves, by a comment.
"""

import sys

from course_lib.command_line.main import main
from course_lib.grading.judging import judge, workers
from course_lib.grading.judging.sandbox import Sandbox

GOES_ON = "for ever"
SHORT, LONG = 1, 60  # seconds

_hold = Sandbox.hold


def hold(self, source, name, others=()):
    """Begin the time of an answer, a short one where it or one before it goes on for ever."""
    texts = (source, *(text for text, _ in others), *self.executed)
    self._seconds = SHORT if any(GOES_ON in text for text in texts) else LONG
    _hold(self, source, name, others)


if __name__ == "__main__":
    Sandbox.hold = hold
    if sys.argv[1:]:
        workers.COMMAND = [sys.executable, "-m", "tests.grading.two_clocks"]
        sys.exit(main(sys.argv[1:]))
    sys.exit(judge.main())
