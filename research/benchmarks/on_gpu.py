"""How long attention takes on one GPU and how much memory, against the length of the text.

python -m research.benchmarks.on_gpu [--most 65536]

A layer of the lecture's book: d_model = 1,024, 16 heads, numbers of two bytes, one text, forward
and backward. Where Nsight Compute (ncu) is there, it counts what the full matrix and the compiled
function move to and from the GPU's memory.
"""

import argparse
import csv
import gc
import io
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from course_lib.efficient.variants import VARIANTS
from course_lib.instruments import results
from course_lib.multi_head import MultiHeadAttention
from course_lib.self_attention import scaled_dot_product_attention

NAME, COMMAND = "attention_on_gpu", "python -m research.benchmarks.on_gpu"
D, HEADS, D_K = 1024, 16, 64
LENGTHS = [1024, 2048, 4096, 8192, 16384, 32768, 50_000, 65536]  # 50,000: the lecture's book
MOVED_AT = 4096  # tokens, where bytes are counted
STARTED_AT = 16384  # tokens, where kernels are counted
ROUNDS, SPENT = 7, 6.0  # rounds, unless so many seconds have gone into one length
SECONDS = 12.0  # no further lengths after a step that took longer
DTYPE = torch.bfloat16
SEED = 0


def linear_at_once(q: Tensor, k: Tensor, v: Tensor, mask: None = None) -> Tensor:
    """Linear attention as two products of whole matrices: ours goes by chunks, for a processor."""
    q, k = F.elu(q) + 1, F.elu(k) + 1
    return q @ (k.mT @ v) / (q @ k.sum(-2).unsqueeze(-1))


RULES: dict[str, Callable] = {
    "full matrix": scaled_dot_product_attention,
    "compiled": F.scaled_dot_product_attention,
    "linear, two products": linear_at_once,
}
EXACT = ("full matrix", "compiled")
FLEX = "window, flex_attention"


@cache
def compiled_flex() -> Callable[..., Tensor]:
    """Return torch's function, compiled for the masks that it will meet."""
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention)


def flex_window(n: int) -> Callable[..., Tensor]:
    """Return torch's compiled attention with the block mask of our window."""
    from torch.nn.attention.flex_attention import create_block_mask

    reach = VARIANTS["window"].benchmark(n, D_K)["width"] // 2
    visible = create_block_mask(
        lambda batch, head, i, j: (i - j).abs() <= reach, None, None, n, n, device="cuda"
    )
    return lambda q, k, v, mask=None: compiled_flex()(q, k, v, block_mask=visible)


def layer(name: str, n: int) -> Callable[[Tensor], Tensor]:
    """Build the self-attention of n tokens on the GPU."""
    torch.manual_seed(SEED)
    if name == FLEX:
        module = MultiHeadAttention(D, HEADS, flex_window(n))
    elif name in RULES:
        module = MultiHeadAttention(D, HEADS, RULES[name])
    else:
        variant = VARIANTS[name]
        module = variant.layer(D, HEADS, variant.set_up(variant.benchmark, n, D_K))
    module = module.to("cuda", DTYPE)
    return lambda x: module(x, x, x)


def measure(name: str, n: int) -> tuple[float, float]:
    """Return the median seconds of a step of n tokens, and the MiB that it adds at its peak."""
    attend = layer(name, n)
    x = torch.randn(1, n, D, device="cuda", dtype=DTYPE, requires_grad=True)
    cotangent = torch.randn_like(x)
    taken, added = [], 0.0
    began = time.perf_counter()
    while len(taken) <= ROUNDS and (len(taken) < 2 or time.perf_counter() - began < SPENT):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before, start = torch.cuda.memory_allocated(), time.perf_counter()
        attend(x).backward(cotangent)
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
        added = (torch.cuda.max_memory_allocated() - before) / 2**20
        x.grad = None
    # the first step loads what all need
    return statistics.median(taken[1:]), added


def benchmark(most: int) -> dict[str, Any]:
    """Return a row for each way and length, and why a way did not run at a length."""
    rows, missing = [], {}
    for name in [*RULES, *VARIANTS, FLEX]:
        for n in (n for n in LENGTHS if n <= most):
            try:
                took, added = measure(name, n)
            except Exception as error:
                missing[f"{name} at {n:,}"] = f"{type(error).__name__}: {error}".split(". ")[0]
                if isinstance(error, torch.OutOfMemoryError):
                    break
                continue
            finally:
                gc.collect()
                torch.cuda.empty_cache()
            print(
                f"{name:20} {n:6,} tokens: {1000 * took:10,.2f} ms {added:10,.0f} MiB", flush=True
            )
            row = {"way": name, "n": n, "seconds": float(f"{took:.4g}"), "MiB": round(added)}
            rows.append(row)
            if took > SECONDS:
                missing[f"{name} beyond {n:,}"] = f"{took:.0f} seconds a step"
                break
    return {"rows": rows, "missing": missing}


def agreement(n: int = 300) -> dict[str, float]:
    """Return how far each function's results on the GPU are from those on the processor."""
    generator = torch.Generator().manual_seed(SEED)
    # the queries are the keys, which one of the variants demands
    x, v = (torch.randn(2, n, D_K, generator=generator, dtype=torch.double) for _ in range(2))
    apart = {}
    for name, variant in VARIANTS.items():
        found = []
        for device in ("cpu", "cuda"):
            torch.manual_seed(SEED)
            rule = variant.set_up(variant.example, n, D_K)
            if isinstance(rule, torch.nn.Module):
                rule = rule.to(device, torch.double)
            found.append(rule(x.to(device), x.to(device), v.to(device)).cpu())
        apart[name] = float(f"{(found[0] - found[1]).abs().max().item():.1e}")
    return apart


def inputs() -> tuple[list[Tensor], Tensor]:
    """Return queries, keys and values of all heads, and a gradient of their attention."""
    torch.manual_seed(SEED)
    q, k, v, cotangent = torch.randn(4, 1, HEADS, MOVED_AT, D_K, device="cuda", dtype=DTYPE)
    return [x.requires_grad_() for x in (q, k, v)], cotangent


def once(name: str) -> None:
    """Attend once, forward and backward, for a profiler that counts from here to the end."""
    qkv, cotangent = inputs()
    RULES[name](*qkv).backward(cotangent)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    RULES[name](*qkv).backward(cotangent)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def moved(name: str) -> float | None:
    """Return the bytes that cross between the GPU and its memory, counted by ncu if it is there."""
    if not (ncu := shutil.which("ncu") or shutil.which("/usr/local/cuda/bin/ncu")):
        return None
    counters = "dram__bytes_read.sum,dram__bytes_write.sum"
    options = ["--csv", "--page", "raw", "--print-units", "base", "--profile-from-start", "off"]
    command = [
        ncu,
        *options,
        "--metrics",
        counters,
        sys.executable,
        "-m",
        "research.benchmarks.on_gpu",
    ]
    done = subprocess.run(
        [*command, "--once", name], capture_output=True, encoding="utf8", check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))[1:]  # the first row holds units
    if not rows:
        print(f"ncu counted nothing: {done.stdout[-500:]} {done.stderr[-500:]}", file=sys.stderr)
        return None
    return sum(float(row[one].replace(",", "")) for row in rows for one in counters.split(","))


def kernels() -> dict[str, dict[str, float]]:
    """Return how many kernels one step of each way starts, and the seconds that they compute."""
    found = {}
    for name in [*RULES, *VARIANTS, FLEX]:
        attend = layer(name, STARTED_AT)
        x = torch.randn(1, STARTED_AT, D, device="cuda", dtype=DTYPE, requires_grad=True)
        for _ in range(2):
            attend(x).sum().backward()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            attend(x).sum().backward()
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            profiler.export_chrome_trace(f"{folder}/trace.json")
            events = json.loads(Path(folder, "trace.json").read_text("utf8"))["traceEvents"]
        taken = [event["dur"] / 1e6 for event in events if event.get("cat") == "kernel"]
        found[name] = {"kernels": len(taken), "busy": float(f"{sum(taken):.4g}")}
        print(name, found[name], flush=True)
    return found


def one_call(times: int = 20_000) -> float:
    """Return the seconds of a call that adds 1 to one number: what a start costs."""
    x = torch.zeros(1, device="cuda")
    for _ in range(2):  # the first round warms up
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(times):
            x.add_(1)
        torch.cuda.synchronize()
    return float(f"{(time.perf_counter() - start) / times:.2g}")


def input_and_output() -> dict[str, dict[str, float | None]]:
    """Return operations, bytes moved and seconds of one step of attention alone, both ways."""
    found = {}
    for name in EXACT:
        rule = RULES[name]
        qkv, cotangent = inputs()
        step = partial(_step, rule, qkv, cotangent)
        with FlopCounterMode(display=False) as counter:
            step()
        taken = []
        for _ in range(20):
            torch.cuda.synchronize()
            start = time.perf_counter()
            step()
            torch.cuda.synchronize()
            taken.append(time.perf_counter() - start)
        seconds = float(f"{statistics.median(taken[5:]):.4g}")
        found[name] = {"operations": counter.get_total_flops(), "seconds": seconds}
    return {name: own | {"bytes": moved(name)} for name, own in found.items()}


def _step(rule: Callable, qkv: list[Tensor], cotangent: Tensor) -> None:
    rule(*qkv).backward(cotangent)


def table(figures: dict[str, Any]) -> str:
    """Return the table of docs/RESULTS.md: milliseconds by length, and the memory of the book."""
    shown = [1024, 4096, 16384, 50_000, 65536]
    lines = [f"| milliseconds | {' | '.join(f'n = {n:,}' for n in shown)} | GiB at 50,000 |"]
    lines.append(f"|:-|{'-:|' * (len(shown) + 1)}")
    for way in dict.fromkeys(row["way"] for row in figures["rows"]):
        at = {row["n"]: row for row in figures["rows"] if row["way"] == way}
        cells = [f"{1000 * at[n]['seconds']:,.1f}" if n in at else "—" for n in shown]
        cells.append(f"{at[50_000]['MiB'] / 1024:.1f}" if 50_000 in at else "—")
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table and keep the figures in results/attention_on_gpu.json."""
    parser = argparse.ArgumentParser(
        prog="python -m research.benchmarks.on_gpu", description=__doc__
    )
    parser.add_argument("--most", type=int, default=LENGTHS[-1], help="not kept if less")
    parser.add_argument("--once", choices=EXACT, help="one step, for a profiler")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("this benchmark needs a GPU that torch can use (CUDA), and found none")
        return 1
    if options.once:
        once(options.once)
        return 0
    start = time.perf_counter()
    figures = {
        "gpu": torch.cuda.get_device_name(),
        "d_model": D,
        "heads": HEADS,
        "dtype": "bfloat16",
    }
    figures |= {"agreement": agreement(), "one step": input_and_output()}
    print(figures)
    figures |= {"one call": one_call(), "kernels": kernels()} | benchmark(options.most)
    print(table(figures))
    for name, reason in figures["missing"].items():
        print(f"{name}: {reason}")
    if options.most == LENGTHS[-1]:
        taken = time.perf_counter() - start
        results.save(NAME, figures, command=COMMAND, seeds=[SEED], seconds=taken)
    return 0


if __name__ == "__main__":
    sys.exit(main())
