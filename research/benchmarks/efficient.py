"""How long attention takes and how much memory, against the number of words: ours and others'.

python -m research.benchmarks.efficient [--most 65536]
"""

import argparse
import contextlib
import gc
import importlib
import math
import multiprocessing
import statistics
import sys
import time
import warnings
from importlib import metadata
from multiprocessing.connection import Connection
from typing import NamedTuple

import torch
from tqdm import tqdm

from course_lib.instruments import results
from research.benchmarks import environments
from research.benchmarks.variants import BUILD, OTHERS, D

NAME, COMMAND = "attention_speed", "make bench"
LEAST, MOST = 512, 65536
ROUNDS, SPENT = 7, 12.0  # rounds, unless so many seconds have gone into one variant at one length
SECONDS, MIB = 20.0, 6 * 1024  # what a run at the next length may be expected to take
WARM_UP = 5.0  # a first run that took longer counts
SEED = 0


class Step(NamedTuple):
    """Forward and backward: seconds, MiB added at the peak, and the seconds of a yardstick."""

    seconds: float
    added: float
    yardstick: float


def step(name: str, n: int) -> Step:
    """Take a step of n words. Belongs into a process of its own: a peak is never forgotten."""
    # a first small step loads what every step needs
    _step("linear", 64)
    earlier, before = _yardstick(), _peak()
    seconds = _step(name, n)
    return Step(seconds, _peak() - before, (earlier + _yardstick()) / 2)


def _yardstick() -> float:
    """Return the seconds that some matrix products take just now: machines do not keep one pace."""
    a = torch.ones(512, 512)
    start = time.perf_counter()
    for _ in range(15):
        torch.mm(a, a)
    return time.perf_counter() - start


def _step(name: str, n: int) -> float:
    torch.manual_seed(SEED)
    layer = BUILD[name](n)
    x, cotangent = torch.randn(1, n, D, requires_grad=True), torch.randn(1, n, D)
    for _ in range(2):
        start = time.perf_counter()
        layer(x).backward(cotangent)
        seconds = time.perf_counter() - start
        if seconds > WARM_UP:
            break
    return seconds


def _peak() -> float:
    """Return the most MiB that this process has ever held; macOS counts bytes, Linux KiB."""
    import resource  # which Windows does not have

    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held / 2 ** (20 if sys.platform == "darwin" else 10)


def measure(name: str, n: int) -> Step:
    """Take a step in a child of this process, which has not computed anything itself.

    Raises RuntimeError where the child died or the step failed.
    """
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe(duplex=False)
    child = context.Process(target=_report, args=(its, name, n))
    child.start()
    its.close()
    try:
        reply = mine.recv()
    except EOFError:
        reply = "its process died"
    child.join()
    if isinstance(reply, str):
        raise RuntimeError(f"{name} at n = {n}: {reply}")
    return reply


def _report(out: Connection, name: str, n: int) -> None:
    warnings.simplefilter("ignore")
    try:
        # one of the packages prints a line
        with contextlib.redirect_stdout(None):
            taken = step(name, n)
        out.send(taken)
    except Exception as error:
        out.send(repr(error))


def due(rounds: dict[int, list[Step]], n: int) -> bool:
    """Return True if a variant is to run at n, after the rounds that it has had, by length.

    Again, where its rounds have not taken long; for the first time, where the first round at the
    two lengths before lets it be expected that neither time nor memory is too much.
    """
    if n in rounds:
        return sum(taken.seconds for taken in rounds[n]) <= SPENT
    last = [rounds[length][0][:2] for length in rounds if length < n][-2:]
    return len(last) < 2 or all(
        new * max(1.0, new / max(old, most / 1000)) <= most
        for old, new, most in zip(*last, (SECONDS, MIB), strict=True)
    )


def benchmark(names: list[str], most: int) -> dict:
    """Return medians: seconds and MiB of each variant at each length.

    A round goes through all lengths, so that a slow minute of the machine falls on none alone.
    """
    lengths = [LEAST * 2**i for i in range(int(math.log2(most / LEAST)) + 1)]
    steps, left_out = {name: {} for name in names}, {}
    for _ in tqdm(range(ROUNDS), desc="rounds, twenty minutes in all"):
        for n in lengths:
            for name, rounds in steps.items():
                if (name in left_out and n not in rounds) or not due(rounds, n):
                    continue
                try:
                    taken = measure(name, n)
                except RuntimeError as error:
                    left_out[name] = str(error)
                else:
                    rounds.setdefault(n, []).append(taken)
    return {"n": lengths, **medians(steps), "left out": left_out}


def medians(steps: dict[str, dict[int, list[Step]]]) -> dict[str, dict[str, list[float]]]:
    """Return the median seconds and MiB of each variant, by length.

    Seconds are those of a machine that takes for the yardstick what this one took as a rule.
    """
    every = [taken for rounds in steps.values() for own in rounds.values() for taken in own]
    usual = statistics.median(taken.yardstick for taken in every)
    seconds, memory = ({name: [] for name in steps} for _ in range(2))
    for name, rounds in steps.items():
        for own in rounds.values():
            typical = usual * statistics.median(taken.seconds / taken.yardstick for taken in own)
            seconds[name].append(float(f"{typical:.4g}"))
            memory[name].append(round(statistics.median(taken.added for taken in own)))
    return {"seconds": seconds, "MiB": memory}


def slope(lengths: list[int], taken: list[float], first: int, last: int) -> float | None:
    """Return by which power of n something grows between two lengths; None where it did not run."""
    if last not in lengths[: len(taken)]:
        return None
    rise = taken[lengths.index(last)] / taken[lengths.index(first)]
    return math.log(rise) / math.log(last / first)


def table(figures: dict) -> str:
    """Return the table of the README: milliseconds, memory, and the powers by which both grow."""
    lengths, shown = figures["n"], [2048, 8192, 16384, MOST]
    head = [*(f"n = {n:,}" for n in shown), f"GiB at {MOST:,}", "power of n: time", "memory"]
    lines = [f"| milliseconds | {' | '.join(head)} |", f"|:-|{'-:|' * len(head)}"]
    for name, seconds in figures["seconds"].items():
        if not seconds:
            continue
        memory = figures["MiB"][name]
        at = dict(zip(lengths, zip(seconds, memory, strict=True), strict=False))
        cells = [f"{1000 * at[n][0]:,.0f}" if n in at else "—" for n in shown]
        cells.append(f"{at[MOST][1] / 1024:.2f}" if MOST in at else "—")
        for taken in (seconds, memory):
            power = slope(lengths, taken, 8192, MOST)
            cells.append("—" if power is None else f"{power:.2f}")
        ours = name if name in OTHERS else f"**{name}**"
        lines.append(f"| {ours} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table and keep the figures in results/attention_speed.json."""
    parser = argparse.ArgumentParser(
        prog="python -m research.benchmarks.efficient", description=__doc__
    )
    parser.add_argument("--most", type=int, default=MOST, help="the longest text; not kept if less")
    options = parser.parse_args()
    start = time.perf_counter()
    for package in environments.importable(environments.ATTENTION):
        print(f"{package} could not be fetched, so it is left out", file=sys.stderr)
    # import all of it once, so that no child has to; what computes nothing may be forked safely
    there, versions = list(BUILD), {}
    for name, other in OTHERS.items():
        try:
            importlib.import_module(other.module)
        except ImportError as error:
            there.remove(name)
            print(f"{name} is left out: {error}", file=sys.stderr)
        else:
            package = other.module.partition(".")[0].replace("_", "-")
            versions[package] = metadata.version(package)
    gc.freeze()
    figures = benchmark(there, options.most)
    figures["packages"] = versions
    print(table(figures))
    for reason in figures["left out"].values():
        print(f"left out: {reason}", file=sys.stderr)
    if options.most == MOST:
        taken = time.perf_counter() - start
        results.save(NAME, figures, command=COMMAND, seeds=[SEED], seconds=taken)


if __name__ == "__main__":
    main()
