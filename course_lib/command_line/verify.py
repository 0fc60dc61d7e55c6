"""`course verify`: compare each component with its oracle, and try the checks on wrong answers."""

import sys
from argparse import ArgumentParser, Namespace

from course_lib.command_line.shared import show

NAME = "verify"
WHAT = "compare each component with its oracle, and try the checks on wrong answers"
EXAMPLE = "--markdown"

LARGEST_ERROR = 1e-10  # of a component against its oracle, in float64


def add_arguments(parser: ArgumentParser) -> None:
    """Declare how the tables are printed."""
    parser.add_argument("--markdown", action="store_true", help="print what the README shows")


def run(options: Namespace) -> int:
    """Print the errors, and the number of answers tried; return 1 if something does not hold."""
    import torch
    from tqdm import tqdm

    from course_lib.checking.catalogue import ids, load
    from course_lib.checking.laws.laws import prove
    from course_lib.verify import as_markdown, verify

    torch.set_num_threads(1)  # hundreds of thousands of calls, none of which is worth sharing out
    rows = verify()
    proofs = {x: prove(load(x)) for x in tqdm(ids(), unit="exercise")}
    violations = [f"{x}: {violation}" for x in proofs for violation in proofs[x].violations]
    counts = [(x.mistakes, x.alternatives, x.mutants, x.edits) for x in proofs.values()]
    totals = (len(proofs), *map(sum, zip(*counts, strict=True)), len(violations))
    kinds = ("exercises", "known mistakes", "alternatives", "mutants", "edits", "violations")
    if options.markdown:
        print(as_markdown(rows))
        for line in (kinds, ["-:"] * len(kinds), totals):
            print(f"| {' | '.join(map(str, line))} |")
    else:
        errors = [
            (x.component, x.oracle, f"{x.error:.0e}", f"{x.gradient_error:.0e}") for x in rows
        ]
        show(("component", "oracle", "error", "gradient error"), errors)
        show(kinds, [totals])
    for violation in violations:
        print(violation, file=sys.stderr)
    # each by itself: the maximum of a number and NaN may be the number
    exact = all(x.error < LARGEST_ERROR and x.gradient_error < LARGEST_ERROR for x in rows)
    return int(bool(violations) or not exact)
