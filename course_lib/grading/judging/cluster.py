"""Batches of notebooks on the machines of a Dask cluster.

Each of Dask's workers starts one of ours (workers.Worker) as a child and hands it the notebooks;
students' code never runs in Dask's own process. The batch of a worker that is lost is done again by
another.
"""

from collections.abc import Iterator
from contextlib import closing
from math import ceil

from course_lib.files.paths import how_to_install
from course_lib.grading.judging.isolation import CannotGrade
from course_lib.grading.judging.rules import Rules
from course_lib.grading.judging.workers import Worker
from course_lib.grading.marks.schema import Entry
from course_lib.grading.submissions.files import SubmittedFile
from course_lib.grading.submissions.journal import fingerprint

LARGEST_BATCH = 16  # a worker takes some seconds to start, and some more to judge as many
CONNECT_SECONDS = 30


def judged_by_dask(
    rules: Rules, work: list[SubmittedFile], scheduler: str
) -> Iterator[tuple[SubmittedFile, str, Entry]]:
    """Judge files on the workers of a scheduler, such as `tcp://127.0.0.1:8786`.

    Yields each file with its fingerprint and entry as its batch is done. Raises CannotGrade
    where there is no scheduler, or no worker with the isolation that the rules ask for.
    """
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError:
        raise CannotGrade(f"Dask is not installed: {how_to_install('instructor')}.") from None

    try:
        client = Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CannotGrade(f"there is no Dask scheduler at {scheduler} ({error}).") from None
    with client:
        workers = len(client.scheduler_info()["workers"]) or 1
        size = min(LARGEST_BATCH, ceil(len(work) / (2 * workers)))
        batches = {}
        for start in range(0, len(work), size):
            batch = work[start : start + size]
            contents = [submitted.content() for submitted in batch]
            future = client.submit(judge_batch, rules, contents, pure=False)
            batches[future] = list(zip(batch, map(fingerprint, contents), strict=True))
        for future in as_completed(list(batches), loop=client.loop):
            try:
                entries = future.result()
            except KilledWorker as error:
                raise CannotGrade(f"worker after worker ended over one batch ({error}).") from None
            for (submitted, sha256), entry in zip(batches.pop(future), entries, strict=True):
                yield submitted, sha256, entry


def judge_batch(rules: Rules, contents: list[bytes]) -> list[Entry]:
    """Judge notebooks in a worker process of this machine. Raises NoIsolation."""
    with closing(Worker(rules)) as worker:
        return [worker.judge(content) for content in contents]
