# %% [markdown]
# # On a GPU
#
# **15 minutes · an exploration of lesson 13 · needs nothing**
#
# Lessons 13 and 14 race on a processor with two cores. Large models are trained on GPUs. **Who wins there, and what decides it?** An H100 with 80 GB took the times of this page: one layer of the size in lesson 13 ($d_{model} = 1{,}024$, 16 heads, numbers of two bytes), forward and backward, one text. On a GPU that PyTorch can use, `python -m research.benchmarks.on_gpu` takes them again.

# %%
from course_lib.exercises import reveal
from course_lib.instruments import plots, results

# %%
kept = results.load("attention_on_gpu")["figures"]
ways = dict.fromkeys(row["way"] for row in kept["rows"])
took = {way: {r["n"]: r["seconds"] for r in kept["rows"] if r["way"] == way} for way in ways}
memory = {way: {r["n"]: r["MiB"] for r in kept["rows"] if r["way"] == way} for way in ways}
print(f"{kept['gpu']}: {len(ways)} ways, {len(kept['rows'])} times")

# %% [markdown]
# ## How long a text fits?
#
# The full matrix of scores takes $16 \cdot n^2 \cdot 2$ bytes, and the backward pass needs more than one such matrix. The lengths are 1,024, 2,048, 4,096, and so on, doubled each time. **Which is the longest that the full matrix gets through in 80 GB?**

# %%
guess = None  # tokens

# %% tags=["nbval-check-output"]
full = memory["full matrix"]
reveal(guess, f"{max(full):,}")
for n, most in full.items():
    square = 16 * n**2 * 2 / 2**20
    print(f"{n:6,} tokens: {most / 1024:5.1f} GiB at the peak, {most / square:.1f} squares")
print(f"six squares of 50,000 tokens: {6 * 16 * 50_000**2 * 2 / 2**30:.0f} GiB", end="; ")
print(f"compiled: {memory['compiled'][50_000] / 1024:.1f} GiB")
assert max(full) == 16384 and "full matrix at 32,768" in kept["missing"]

# %% [markdown]
# At its peak the step, with our softmax, holds six squares. The book of 50,000 tokens would need 447 GiB for one layer. The compiled function gets through with 1.1.
#
# ## More operations, less time
#
# Now attention alone, without the four matrices of the layer, at 4,096 tokens. A profiler counted what crossed between the GPU and its memory. The compiled function computes the scores a second time in the backward pass: seven products of $n \times n \times d$ where the full matrix needs six. **How many times as many bytes does the full matrix move?**

# %%
guess = None  # a factor

# %% tags=["nbval-check-output"]
step = kept["one step"]
reveal(guess, f"{step['full matrix']['bytes'] / step['compiled']['bytes']:.0f} times")
for way, own in step.items():
    rate = own["operations"] / own["seconds"] / 1e12
    print(
        f"{way:12} {own['operations'] / 1e9:4.0f} billion operations, "
        f"{own['bytes'] / 1e9:5.2f} GB, "
        f"{1000 * own['seconds']:5.2f} ms: {rate:4.0f} trillion operations a second"
    )
assert step["compiled"]["operations"] * 6 == step["full matrix"]["operations"] * 7
squares = step["full matrix"]["bytes"] / (16 * 4096**2 * 2)
print(f"{squares:.0f} squares; at 3.35 TB/s {step['full matrix']['bytes'] / 3.35e9:.1f} ms")
assert round(squares) == 35

# %% [markdown]
# More operations, in a fourteenth of the time of our softmax. The full matrix moves 18.6 GB, 35 times the matrix of weights: each product reads or writes a square, and each scaling and each part of the softmax does both. (PyTorch's own softmax, one kernel, moves fewer; it is not in this table.) At the 3.35 TB that this memory moves in a second at most (NVIDIA's data sheet, reported), 18.6 GB take 5.6 of the 8.9 ms.

# %% [markdown]
# ## The same algorithm, 200 times slower
#
# The library's loop over tiles and the compiled function are the same algorithm. For the layer with 50,000 tokens one takes 18 seconds, the other 86 milliseconds. A GPU computes in **kernels**, functions that the processor starts one by one. **For what share of the loop's time was the GPU computing at all (16,384 tokens)?**

# %%
guess = None  # a share, such as 0.9

# %% tags=["nbval-check-output"]
kernels = kept["kernels"]
reveal(guess, f"{kernels['tiled']['busy'] / took['tiled'][16384]:.0%}")
print(f"{'16,384 tokens':24}{'kernels':>9}{'computing':>12}{'in all':>12}")
for way, own in kernels.items():
    busy, whole = 1000 * own["busy"], 1000 * took[way][16384]
    print(f"{way:24}{own['kernels']:9,}{busy:9,.1f} ms{whole:9,.1f} ms{busy / whole:6.0%}")
print(f"a call that adds 1 to a single number: {1e6 * kept['one call']:.1f} µs")
each = took["tiled"][16384] / kernels["tiled"]["kernels"]
print(f"tiles in Python: {1e6 * each:.1f} µs for each kernel,", end=" ")
tiled = kernels["tiled"]
print(f"of which it computes {1e6 * tiled['busy'] / tiled['kernels']:.1f};", end=" ")
print(f"{tiled['kernels'] / 64**2:.0f} for each tile, and", end=" ")
print(f"{tiled['busy'] / kernels['compiled']['busy']:.0f} times as long as the compiled ones")
assert 9e-6 < kept["one call"] < each < 14e-6

# %% [markdown]
# The loop starts 139,310 kernels, 34 for each of 4,096 tiles, and takes 12.5 µs for each. A call that hardly computes anything takes 9.5. So most of the loop's time is starting, from Python. And the rest? The loop's kernels compute for 384 ms, still 43 times as long as those of the compiled function. They last 2.8 µs each, perhaps too small to fill the GPU. (Kernels were timed in a run of their own, which explains the 101 %.)

# %% [markdown]
# ## Every way
#
# So a race between our loops and PyTorch's functions is one of starts. Two rivals have few kernels as well: the window of 257 by `flex_attention`, which compiles a kernel for a mask that you write, and linear attention (lesson 14) as two products of whole matrices. Exact attention has $4nd^2 + 2n^2d$ multiply-adds a layer, linear attention about $4nd^2 + 2nd\,d_k$, with $d = 1{,}024$ and $d_k = 64$. **How many times as fast is linear attention at 4,096 tokens, and at 50,000?**

# %%
guess = None  # two factors

# %%
exact, linear = took["compiled"], took["linear, two products"]
reveal(guess, tuple(round(exact[n] / linear[n], 1) for n in (4096, 50_000)))
for n in (4096, 50_000):
    counted = (4 * 1024 + 2 * n) / (4 * 1024 + 2 * 64)
    print(f"{n:6,} tokens, by the count: {counted:.1f} times")

# %% tags=["hide-input"]
title = "One text at a time, exact attention leads up to 4,096 tokens"
figure, ax = plots.axes(title, "tokens", "forward and backward, ms", size=(8.4, 4.6))
shown = {
    "full matrix": ("full matrix", 3, "-"),
    "compiled": ("compiled, exact", 0, "-"),
    "window, flex_attention": ("window,\nflex_attention", 2, "-"),
    "linear, two products": ("linear,\ntwo products", 4, "-"),
    "tiled": ("tiles in Python, exact", 0, "--"),
    "window": ("window,\nour loop", 2, "--"),
    "linear": ("linear, our loop", 4, "--"),
    "LSH": ("LSH, our loop", 1, "--"),
    "Linformer": ("Linformer", 5, "--"),
}
for way, (label, colour, line) in shown.items():
    n, times = list(took[way]), [1000 * seconds for seconds in took[way].values()]
    colour = plots.COLOURS[colour]
    ax.loglog(n, times, line, marker="o", color=colour, markersize=3)
    place = {"window": 0.72, "linear, two products": 1.5, "window, flex_attention": 0.8}
    place |= {"LSH": 1.25, "linear": 1.08}
    ax.text(n[-1] * 1.1, times[-1] * place.get(way, 1), label, color=colour, size=8, va="center")
lengths = [1024, 2048, 4096, 8192, 16384, 32768, 65536]
ax.set(xlim=(900, 250_000), xticks=lengths, xticklabels=[f"{n:,}" for n in lengths])
ax.minorticks_off()
ends = "; ".join(
    f"{label.replace(chr(10), ' ')} {1000 * took[way][max(took[way])]:,.1f} at {max(took[way]):,}"
    for way, (label, *_) in shown.items()
)
plots.show(figure, f"Milliseconds against tokens, both logarithmic, nine ways. At the end: {ends}.")

# %% tags=["hide-input"]
for n in (4096, 50_000):
    ahead = {way: exact[n] / own[n] for way, own in took.items() if n in own and way != "compiled"}
    print(f"{n:,} tokens, compiled exact attention takes {1000 * exact[n]:.1f} ms; times as fast:")
    print("  " + ", ".join(f"{way} {ratio:.3g}" for way, ratio in ahead.items()))
    loops = [ahead[way] for way in ("tiled", "window", "linear", "BigBird")]
    assert max(loops) < 0.25
assert max(exact[n] / linear[n] for n in exact if n <= 4096) < 1
chunks = took["linear"][50_000]
print(f"linear, 50,000 tokens: {1000 * chunks:.0f} and {1000 * linear[50_000]:.1f} ms")
assert 14 < ahead["linear, two products"] < 16 and 17 < ahead["window, flex_attention"] < 19
assert max(exact[n] for n in (1024, 2048, 4096)) < 1.1 * min(exact.values())

# %% [markdown]
# By the count, 2.9 and 25 times; it came to 0.6 and 15. Look at the left of the figure: from 1,024 to 4,096 tokens the exact layer takes 1.6 ms at any length, and its rivals are flat, too. One text is too little work for this GPU: Python and starts are timed. *This table does not rank ways below some 8,192 tokens*; a batch of texts would share the starts, and the lead of exact attention may be gone. At 50,000 tokens operations decide: the window is 18 times as fast as exact attention, linear attention 15 times.

# %% [markdown]
# Our own loops lose everywhere, even at 50,000 tokens; of those from lesson 14 only Linformer is ahead there. That says nothing of the ideas. The two linear attentions are the same mathematics, and take 516 and 5.6 ms: the one was made for a processor's cache.

# %% [markdown]
# ## What to remember
#
# Memory traffic and kernel starts can cost more than operations. Exact attention in one kernel has removed both, and where both are gone, operations decide: then a window or a fixed state wins on long texts, if it has a kernel too. (One GPU, one layer, one text at a time.)
#
# Dao et al. 2022 (FlashAttention). Lesson 14 asks what the cheaper ways give up.
