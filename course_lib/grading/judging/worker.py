"""A process that judges one notebook after another: `python -m course_lib.grading.judging.worker`.

Its first line of input is the rules, each further one a notebook. It says that it is ready; each
further line that it puts out is an entry of the results, in the same order. It ends where a
notebook takes more memory or computing than a judge is given, and says so by how it ends.
"""

import base64
import json
import os
import signal
import sys
from pathlib import Path

import torch

from course_lib.grading.judging.isolation import NoIsolation
from course_lib.grading.judging.judge import Judge
from course_lib.grading.judging.rules import Rules
from course_lib.grading.judging.workers import MEMORY, READY, SECONDS, Ending


def main() -> int:
    """Judge what comes on standard input until it ends."""
    torch.set_num_threads(1)
    if sys.platform == "linux":
        from course_lib.grading.judging.inside.confinement import die_with_parent

        die_with_parent()
    # what anything else prints is no entry
    replies, sys.stdout = sys.stdout, sys.stderr
    with Judge(Rules(**json.loads(sys.stdin.readline()))) as judge:
        if not _limited():
            print(
                f"the memory of processes is limited here (`ulimit -v`): {MEMORY // 2**30} GiB "
                "are needed beside what Python and torch take.",
                file=sys.stderr,
            )
            return Ending.NO_LEVEL
        print(READY, file=replies, flush=True)
        try:
            for line in sys.stdin:
                # the signal ends this process; a sandbox inherits no timer
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                entry = judge.entry(base64.b64decode(json.loads(line)))
                print(json.dumps(entry), file=replies, flush=True)
        except NoIsolation as error:
            print(error, file=sys.stderr)
            return Ending.NO_LEVEL
        except MemoryError:
            return Ending.NO_MEMORY
    return 0


def _limited() -> bool:
    """Bound what this process takes, where the system tells how much that is now.

    Return False where the system's own limit is lower.
    """
    if not (size := Path("/proc/self/statm")).exists():
        return True
    import resource  # which Windows does not have

    used = int(size.read_text().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if resource.RLIM_INFINITY != most < used + MEMORY:
        return False
    # a sandbox inherits it, and replaces it by its own
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, most))
    return True


if __name__ == "__main__":
    ending = main()
    sys.stderr.flush()
    os._exit(ending)  # all is said and closed, and torch takes half a second to take itself down
