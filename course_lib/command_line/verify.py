"""`course verify`: compare each component with its oracle, and try the checks on wrong answers."""

import sys
import time
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from course_lib.command_line.shared import show

NAME = "verify"
WHAT = "compare each component with its oracle, and try the checks on wrong answers"
EXAMPLE = "--save"

LARGEST_ERROR = 1e-10  # of a component against its oracle, in float64


def add_arguments(parser: ArgumentParser) -> None:
    """Declare whether the figures are kept."""
    parser.add_argument(
        "--save",
        action="store_true",
        help="keep the figures that RESULTS.md shows, if all holds",
    )


def run(options: Namespace) -> int:
    """Print the errors, and the number of answers tried; return 1 if something does not hold."""
    import torch
    from tqdm import tqdm

    from course_lib.checking.catalogue import ids, load
    from course_lib.checking.laws.laws import prove
    from course_lib.instruments import results
    from course_lib.verify import TRIALS, verify

    start = time.perf_counter()
    torch.set_num_threads(1)  # hundreds of thousands of calls, none of which is worth sharing out
    rows = verify()
    proofs = {x: prove(load(x)) for x in tqdm(ids(), unit="exercise")}
    violations = [f"{x}: {violation}" for x in proofs for violation in proofs[x].violations]
    counts = [(x.mistakes, x.alternatives, x.mutants, x.edits) for x in proofs.values()]
    totals = (len(proofs), *map(sum, zip(*counts, strict=True)), len(violations))
    kinds = ("exercises", "known mistakes", "alternatives", "mutants", "edits", "violations")
    errors = [(x.component, x.oracle, f"{x.error:.0e}", f"{x.gradient_error:.0e}") for x in rows]
    show(("component", "oracle", "error", "gradient error"), errors)
    show(kinds, [totals])
    for violation in violations:
        print(violation, file=sys.stderr)
    # each by itself: the maximum of a number and NaN may be the number
    exact = all(x.error < LARGEST_ERROR and x.gradient_error < LARGEST_ERROR for x in rows)
    holds = exact and not violations
    if options.save and holds:
        figures = {
            "components": list(map(asdict, rows)),
            "exercises": dict(zip(kinds, totals, strict=True)),
        }
        seconds = time.perf_counter() - start
        results.save(
            NAME, figures, command="course verify --save", seeds=range(TRIALS), seconds=seconds
        )
    return int(not holds)
