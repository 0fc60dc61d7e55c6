"""How long attention takes and how much memory, against the number of words: ours and others'.

python -m benchmarks.efficient [--most 65536]
"""

import argparse
import contextlib
import gc
import importlib
import math
import multiprocessing
import resource
import statistics
import sys
import time
import warnings
from importlib import metadata
from multiprocessing.connection import Connection

import torch
from tqdm import tqdm

from benchmarks import scratch
from benchmarks.variants import BUILD, OTHERS, D
from course_lib import results

NAME, COMMAND = "attention_speed", "make bench"
LEAST, MOST = 512, 65536
ROUNDS, SPENT = 7, 12.0  # rounds, unless so many seconds have gone into one variant at one length
SECONDS, MIB = 20.0, 6 * 1024  # what a run at the next length may be expected to take
WARM_UP = 5.0  # a first run that took longer counts
SEED = 0


def step(name: str, n: int) -> tuple[float, float]:
    """Return the seconds of one step, forward and backward, and the MiB that it adds at its peak.

    Belongs into a process of its own: a peak is never forgotten.
    """
    # a first small step loads what every step needs
    _step("linear", 64)
    before = _peak()
    seconds = _step(name, n)
    return seconds, _peak() - before


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
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held / 2 ** (20 if sys.platform == "darwin" else 10)


def measure(name: str, n: int) -> tuple[float, float]:
    """Take a step in a child of this process, which has not computed anything itself.

    Raises RuntimeError where the child died or the step failed.
    """
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe(duplex=False)
    child = context.Process(target=_report, args=(its, name, n))
    child.start()
    its.close()
    try:
        found = mine.recv()
    except EOFError:
        found = "its process died"
    child.join()
    if isinstance(found, str):
        raise RuntimeError(f"{name} at n = {n}: {found}")
    return found


def _report(out: Connection, name: str, n: int) -> None:
    warnings.simplefilter("ignore")
    try:
        # one of the packages prints a line
        with contextlib.redirect_stdout(None):
            found = step(name, n)
        out.send(found)
    except Exception as error:
        out.send(repr(error))


def due(rounds: dict[int, list[tuple[float, float]]], n: int) -> bool:
    """Tell whether a variant is to run at n, after its rounds of (seconds, MiB) at other lengths.

    Again, where its rounds have not taken long; for the first time, where the first round at the
    two lengths before lets it be expected that neither time nor memory is too much.
    """
    if n in rounds:
        return sum(seconds for seconds, _ in rounds[n]) <= SPENT
    last = [rounds[length][0] for length in rounds if length < n][-2:]
    return len(last) < 2 or all(
        new * max(1.0, new / max(old, most / 1000)) <= most
        for old, new, most in zip(*last, (SECONDS, MIB), strict=True)
    )


def benchmark(names: list[str], most: int) -> dict:
    """Return medians: seconds and MiB of each variant at each length.

    A round goes through all lengths, so that a slow minute of the machine falls on none alone.
    """
    lengths = [LEAST * 2**i for i in range(int(math.log2(most / LEAST)) + 1)]
    found, left_out = {name: {} for name in names}, {}
    for _ in tqdm(range(ROUNDS), desc="rounds, twenty minutes in all"):
        for n in lengths:
            for name, rounds in found.items():
                if (name in left_out and n not in rounds) or not due(rounds, n):
                    continue
                try:
                    measured = measure(name, n)
                except RuntimeError as error:
                    left_out[name] = str(error)
                else:
                    rounds.setdefault(n, []).append(measured)
    seconds, memory = ({name: [] for name in names} for _ in range(2))
    for n in lengths:
        steps = {name: rounds[n] for name, rounds in found.items() if n in rounds}
        taken = at_one_speed({name: [t for t, _ in own] for name, own in steps.items()})
        for name, own in steps.items():
            seconds[name].append(float(f"{statistics.median(taken[name]):.4g}"))
            memory[name].append(round(statistics.median(held for _, held in own)))
    return {"n": lengths, "seconds": seconds, "MiB": memory, "left out": left_out}


def at_one_speed(taken: dict[str, list[float]]) -> dict[str, list[float]]:
    """Bring all rounds to the same speed, as that of a machine drifts: to the median of theirs."""
    drifts = [
        statistics.median(times[i] / times[0] for times in taken.values() if i < len(times))
        for i in range(max(map(len, taken.values())))
    ]
    usual = statistics.median(drifts)
    return {
        name: [time * usual / drift for time, drift in zip(times, drifts, strict=False)]
        for name, times in taken.items()
    }


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
        found = dict(zip(lengths, zip(seconds, memory, strict=True), strict=False))
        cells = [f"{1000 * found[n][0]:,.0f}" if n in found else "—" for n in shown]
        cells.append(f"{found[MOST][1] / 1024:.2f}" if MOST in found else "—")
        for taken in (seconds, memory):
            power = slope(lengths, taken, 8192, MOST)
            cells.append("—" if power is None else f"{power:.2f}")
        ours = name if name in OTHERS else f"**{name}**"
        lines.append(f"| {ours} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table and keep the figures in results/attention_speed.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.efficient", description=__doc__)
    parser.add_argument("--most", type=int, default=MOST, help="the longest text; not kept if less")
    options = parser.parse_args()
    start = time.perf_counter()
    for package in scratch.importable(scratch.ATTENTION):
        print(f"{package} could not be fetched, so it is left out", file=sys.stderr)
    # import all of it once, so that no child has to; what computes nothing may be forked safely
    there, versions = list(BUILD), {}
    for name, module in OTHERS.items():
        try:
            importlib.import_module(module)
        except ImportError as error:
            there.remove(name)
            print(f"{name} is left out: {error}", file=sys.stderr)
        else:
            package = module.partition(".")[0].replace("_", "-")
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
