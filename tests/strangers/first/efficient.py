# %% efficient/neighbours | right | sets and numpy's generator, the rows sorted at the end
import numpy as np


def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    """List for each block of queries the blocks of keys that it sees; -1 stands for none.

    It sees the `window` blocks around itself (0 is none, the ends cut), the first `global_blocks`
    blocks, and `random_blocks` of the others, or as many as remain. The global blocks see every
    block. Time and memory O(blocks^2), of blocks, not words. Source: Zaheer et al. 2020, section 2.
    Raises ValueError for a window that is even and not 0.
    """
    if window % 2 == 0 and window != 0:
        raise ValueError(f"a window of {window} blocks has no middle")
    draw = np.random.default_rng(seed)
    rows = []
    for i in range(blocks):
        row = set(range(min(global_blocks, blocks)))
        if i < global_blocks:
            row = set(range(blocks))
        if window:
            row |= set(range(max(0, i - window // 2), min(blocks, i + window // 2 + 1)))
        others = sorted(set(range(blocks)) - row)
        picked = draw.permutation(len(others))[:random_blocks]
        rows.append(sorted(row | {others[p] for p in picked.tolist()}))
    longest = max((len(row) for row in rows), default=0)
    filled = [row + [-1] * (longest - len(row)) for row in rows]
    return torch.tensor(filled, dtype=torch.long).reshape(blocks, longest)


# %% efficient/neighbours | wrong | the global blocks do not see every block themselves
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    """List for each block of queries the blocks of keys that it sees; -1 stands for none.

    It sees the `window` blocks around itself (0 is none, the ends cut), the first `global_blocks`
    blocks, and `random_blocks` of the others, or as many as remain. The global blocks see every
    block. Time and memory O(blocks^2), of blocks, not words. Source: Zaheer et al. 2020, section 2.
    Raises ValueError for a window that is even and not 0.
    """
    if window % 2 == 0 and window:
        raise ValueError("window")
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for i in range(blocks):
        row = set(range(min(global_blocks, blocks)))
        if window:
            row |= set(range(max(0, i - window // 2), min(blocks, i + window // 2 + 1)))
        others = [j for j in range(blocks) if j not in row]
        order = torch.randperm(len(others), generator=generator)[:random_blocks]
        rows.append(sorted(row) + [others[p] for p in order.tolist()])
    longest = max(map(len, rows))
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])


# %% efficient/neighbours | wrong | the window wraps round the ends
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    """List for each block of queries the blocks of keys that it sees; -1 stands for none.

    It sees the `window` blocks around itself (0 is none, the ends cut), the first `global_blocks`
    blocks, and `random_blocks` of the others, or as many as remain. The global blocks see every
    block. Time and memory O(blocks^2), of blocks, not words. Source: Zaheer et al. 2020, section 2.
    Raises ValueError for a window that is even and not 0.
    """
    if window % 2 == 0 and window:
        raise ValueError("window")
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for i in range(blocks):
        row = set(range(blocks if i < global_blocks else global_blocks))
        if window:
            row |= {(i + o) % blocks for o in range(-(window // 2), window // 2 + 1)}
        others = [j for j in range(blocks) if j not in row]
        order = torch.randperm(len(others), generator=generator)[:random_blocks]
        rows.append(sorted(row) + [others[p] for p in order.tolist()])
    longest = max(map(len, rows))
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])


# %% efficient/neighbours | wrong | random blocks are drawn from all, so some are there already
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    """List for each block of queries the blocks of keys that it sees; -1 stands for none.

    It sees the `window` blocks around itself (0 is none, the ends cut), the first `global_blocks`
    blocks, and `random_blocks` of the others, or as many as remain. The global blocks see every
    block. Time and memory O(blocks^2), of blocks, not words. Source: Zaheer et al. 2020, section 2.
    Raises ValueError for a window that is even and not 0.
    """
    if window % 2 == 0 and window:
        raise ValueError("window")
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for i in range(blocks):
        row = set(range(blocks if i < global_blocks else global_blocks))
        if window:
            row |= set(range(max(0, i - window // 2), min(blocks, i + window // 2 + 1)))
        drawn = torch.randperm(blocks, generator=generator)[:random_blocks].tolist()
        rows.append(sorted(row | set(drawn)))
    longest = max(map(len, rows))
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])


# %% efficient/neighbours | wrong | nothing is drawn: the blocks behind the seed-th are taken
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    """List for each block of queries the blocks of keys that it sees; -1 stands for none.

    It sees the `window` blocks around itself (0 is none, the ends cut), the first `global_blocks`
    blocks, and `random_blocks` of the others, or as many as remain. The global blocks see every
    block. Time and memory O(blocks^2), of blocks, not words. Source: Zaheer et al. 2020, section 2.
    Raises ValueError for a window that is even and not 0.
    """
    if window % 2 == 0 and window:
        raise ValueError("window")
    rows = []
    for i in range(blocks):
        row = set(range(blocks if i < global_blocks else global_blocks))
        if window:
            row |= set(range(max(0, i - window // 2), min(blocks, i + window // 2 + 1)))
        others = [j for j in range(blocks) if j not in row]
        rows.append(sorted(row) + others[seed % max(1, len(others)) :][:random_blocks])
    longest = max(map(len, rows))
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])


# %% efficient/neighbours | wrong | the seed is ignored: every call draws others
import random


def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    """List for each block of queries the blocks of keys that it sees; -1 stands for none.

    It sees the `window` blocks around itself (0 is none, the ends cut), the first `global_blocks`
    blocks, and `random_blocks` of the others, or as many as remain. The global blocks see every
    block. Time and memory O(blocks^2), of blocks, not words. Source: Zaheer et al. 2020, section 2.
    Raises ValueError for a window that is even and not 0.
    """
    # TODO: begin with the global blocks; the row of a global block has every block
    # TODO: add the window, cut at the ends
    # TODO: draw from the blocks that are not there yet
    # TODO: fill up all rows to the longest
    if window % 2 == 0 and window:
        raise ValueError("window")
    rows = []
    for i in range(blocks):
        row = set(range(blocks if i < global_blocks else global_blocks))
        if window:
            row |= set(range(max(0, i - window // 2), min(blocks, i + window // 2 + 1)))
        others = [j for j in range(blocks) if j not in row]
        rows.append(sorted(row) + random.sample(others, min(random_blocks, len(others))))
    longest = max(map(len, rows))
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])


# %% efficient/neighbours | wrong | filled up with block 0 instead of -1
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    """List for each block of queries the blocks of keys that it sees; -1 stands for none.

    It sees the `window` blocks around itself (0 is none, the ends cut), the first `global_blocks`
    blocks, and `random_blocks` of the others, or as many as remain. The global blocks see every
    block. Time and memory O(blocks^2), of blocks, not words. Source: Zaheer et al. 2020, section 2.
    Raises ValueError for a window that is even and not 0.
    """
    if window % 2 == 0 and window:
        raise ValueError("window")
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for i in range(blocks):
        row = set(range(blocks if i < global_blocks else global_blocks))
        if window:
            row |= set(range(max(0, i - window // 2), min(blocks, i + window // 2 + 1)))
        others = [j for j in range(blocks) if j not in row]
        order = torch.randperm(len(others), generator=generator)[:random_blocks]
        rows.append(sorted(row) + [others[p] for p in order.tolist()])
    table = torch.zeros(blocks, max(map(len, rows)), dtype=torch.long)
    for i, row in enumerate(rows):
        table[i, : len(row)] = torch.tensor(row)
    return table


# %% efficient/neighbours | wrong | an even window is not refused
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    """List for each block of queries the blocks of keys that it sees; -1 stands for none.

    It sees the `window` blocks around itself (0 is none, the ends cut), the first `global_blocks`
    blocks, and `random_blocks` of the others, or as many as remain. The global blocks see every
    block. Time and memory O(blocks^2), of blocks, not words. Source: Zaheer et al. 2020, section 2.
    Raises ValueError for a window that is even and not 0.
    """
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for i in range(blocks):
        row = set(range(blocks if i < global_blocks else global_blocks))
        if window:
            row |= set(range(max(0, i - window // 2), min(blocks, i + window // 2 + 1)))
        others = [j for j in range(blocks) if j not in row]
        order = torch.randperm(len(others), generator=generator)[:random_blocks]
        rows.append(sorted(row) + [others[p] for p in order.tolist()])
    longest = max(map(len, rows))
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])


# %% efficient/neighbours | wrong | a window of 0 still lets a block see itself
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    """List for each block of queries the blocks of keys that it sees; -1 stands for none.

    It sees the `window` blocks around itself (0 is none, the ends cut), the first `global_blocks`
    blocks, and `random_blocks` of the others, or as many as remain. The global blocks see every
    block. Time and memory O(blocks^2), of blocks, not words. Source: Zaheer et al. 2020, section 2.
    Raises ValueError for a window that is even and not 0.
    """
    if window % 2 == 0 and window:
        raise ValueError("window")
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for i in range(blocks):
        row = set(range(blocks if i < global_blocks else global_blocks))
        row |= set(range(max(0, i - window // 2), min(blocks, i + window // 2 + 1)))
        others = [j for j in range(blocks) if j not in row]
        order = torch.randperm(len(others), generator=generator)[:random_blocks]
        rows.append(sorted(row) + [others[p] for p in order.tolist()])
    longest = max(map(len, rows))
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])


# %% efficient/bigbird_mask | right | two loops over blocks that paint squares
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    """Show which words see which: True where the row of the query's block lists the key's.

    Time and memory O(n^2): to look at, and to test with.
    """
    # TODO: mark the blocks that each row lists, and -1 in a column beside them, cut off later
    # TODO: make each block `block` words long and wide
    n = len(neighbours) * block
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i, row in enumerate(neighbours.tolist()):
        for j in row:
            if j >= 0:
                mask[i * block : i * block + block, j * block : j * block + block] = True
    return mask


# %% efficient/bigbird_mask | wrong | -1 marks the last block
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    """Show which words see which: True where the row of the query's block lists the key's.

    Time and memory O(n^2): to look at, and to test with.
    """
    # TODO: mark the blocks that each row lists, and -1 in a column beside them, cut off later
    # TODO: make each block `block` words long and wide
    blocks = len(neighbours)
    sees = torch.zeros(blocks, blocks, dtype=torch.bool)
    for i in range(blocks):
        sees[i, neighbours[i]] = True
    return sees.repeat_interleave(block, 0).repeat_interleave(block, 1)


# %% efficient/bigbird_mask | wrong | a mask of blocks, not of words
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    """Show which words see which: True where the row of the query's block lists the key's.

    Time and memory O(n^2): to look at, and to test with.
    """
    blocks = len(neighbours)
    sees = torch.zeros(blocks, blocks + 1, dtype=torch.bool)
    sees.scatter_(1, neighbours % (blocks + 1), True)
    return sees[:, :blocks]


# %% efficient/bigbird_mask | wrong | transposed: the key's row lists the query's block
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    """Show which words see which: True where the row of the query's block lists the key's.

    Time and memory O(n^2): to look at, and to test with.
    """
    # TODO: mark the blocks that each row lists, and -1 in a column beside them, cut off later
    # TODO: make each block `block` words long and wide
    blocks = len(neighbours)
    sees = torch.zeros(blocks, blocks + 1, dtype=torch.bool)
    sees.scatter_(1, torch.where(neighbours < 0, blocks, neighbours), True)
    sees = sees[:, :blocks].T
    return sees.repeat_interleave(block, 0).repeat_interleave(block, 1)


# %% efficient/bigbird_mask | wrong | made symmetric: who is seen sees back
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    """Show which words see which: True where the row of the query's block lists the key's.

    Time and memory O(n^2): to look at, and to test with.
    """
    blocks = len(neighbours)
    sees = torch.zeros(blocks, blocks, dtype=torch.bool)
    for i in range(blocks):
        for j in neighbours[i].tolist():
            if j >= 0:
                sees[i, j] = sees[j, i] = True
    return sees.repeat_interleave(block, 0).repeat_interleave(block, 1)


# %% efficient/bigbird_mask | wrong | tiles the pattern instead of stretching it
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    """Show which words see which: True where the row of the query's block lists the key's.

    Time and memory O(n^2): to look at, and to test with.
    """
    blocks = len(neighbours)
    sees = torch.zeros(blocks, blocks + 1, dtype=torch.bool)
    sees.scatter_(1, torch.where(neighbours < 0, blocks, neighbours), True)
    return sees[:, :blocks].repeat(block, block)


# %% efficient/bigbird_mask | wrong | every block sees itself, listed or not
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    """Show which words see which: True where the row of the query's block lists the key's.

    Time and memory O(n^2): to look at, and to test with.
    """
    blocks = len(neighbours)
    sees = torch.eye(blocks, blocks + 1, dtype=torch.bool)
    sees.scatter_(1, torch.where(neighbours < 0, blocks, neighbours), True)
    return sees[:, :blocks].repeat_interleave(block, 0).repeat_interleave(block, 1)


# %% efficient/bigbird_mask | wrong | counts instead of booleans
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    """Show which words see which: True where the row of the query's block lists the key's.

    Time and memory O(n^2): to look at, and to test with.
    """
    # TODO: mark the blocks that each row lists, and -1 in a column beside them, cut off later
    # TODO: make each block `block` words long and wide
    blocks = len(neighbours)
    sees = torch.zeros(blocks, blocks)
    for i, row in enumerate(neighbours.tolist()):
        for j in row:
            if j >= 0:
                sees[i, j] += 1
    return sees.repeat_interleave(block, 0).repeat_interleave(block, 1)


# %% efficient/bigbird_mask | wrong | stops at the first -1 of the whole table: rows cut to the shortest
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    """Show which words see which: True where the row of the query's block lists the key's.

    Time and memory O(n^2): to look at, and to test with.
    """
    # TODO: mark the blocks that each row lists, and -1 in a column beside them, cut off later
    # TODO: make each block `block` words long and wide
    blocks = len(neighbours)
    keep = (neighbours >= 0).all(0)
    sees = torch.zeros(blocks, blocks, dtype=torch.bool)
    for i in range(blocks):
        sees[i, neighbours[i, keep]] = True
    return sees.repeat_interleave(block, 0).repeat_interleave(block, 1)


# %% efficient/bigbird | right | one row after another, each on its own gathered words
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend to the listed blocks: dense attention under `bigbird_mask`, exactly.

    Rows are computed apart, each as long as its own list: a row that lists every block does not
    widen the others. A row that lists none gives zeros. Time O(n m block d), memory O(n d). Source:
    Zaheer et al. 2020, section 2. Raises ValueError unless n = blocks x block, and for blocks that
    do not exist.
    """
    # TODO: leave out what stands for none
    # TODO: let each block of queries meet the blocks of keys that its row lists
    # TODO: attend to all blocks of a row as to one
    blocks, n = len(neighbours), q.shape[-2]
    if n != blocks * block:
        raise ValueError(f"{n} words are not {blocks} blocks of {block}")
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("a listed block does not exist")
    parts = []
    for i, row in enumerate(neighbours.tolist()):
        mine_ = q[..., i * block : (i + 1) * block, :]
        listed = sorted({j for j in row if j >= 0})
        if not listed:
            parts.append(v.new_zeros(*v.shape[:-2], block, v.shape[-1]))
            continue
        keys = torch.cat([k[..., j * block : (j + 1) * block, :] for j in listed], dim=-2)
        values = torch.cat([v[..., j * block : (j + 1) * block, :] for j in listed], dim=-2)
        parts.append(scaled_dot_product_attention(mine_, keys, values))
    return torch.cat(parts, dim=-2) if parts else v.clone()


# %% efficient/bigbird | wrong | dense attention under the mask: the same numbers, with all n^2 scores
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend to the listed blocks: dense attention under `bigbird_mask`, exactly.

    Rows are computed apart, each as long as its own list: a row that lists every block does not
    widen the others. A row that lists none gives zeros. Time O(n m block d), memory O(n d). Source:
    Zaheer et al. 2020, section 2. Raises ValueError unless n = blocks x block, and for blocks that
    do not exist.
    """
    blocks = len(neighbours)
    if q.shape[-2] != blocks * block:
        raise ValueError("n")
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("no such block")
    return scaled_dot_product_attention(q, k, v, bigbird_mask(neighbours, block))


# %% efficient/bigbird | wrong | -1 reads the last block
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend to the listed blocks: dense attention under `bigbird_mask`, exactly.

    Rows are computed apart, each as long as its own list: a row that lists every block does not
    widen the others. A row that lists none gives zeros. Time O(n m block d), memory O(n d). Source:
    Zaheer et al. 2020, section 2. Raises ValueError unless n = blocks x block, and for blocks that
    do not exist.
    """
    blocks = len(neighbours)
    if q.shape[-2] != blocks * block:
        raise ValueError("n")
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("no such block")
    qs, ks, vs = (x.unflatten(-2, (blocks, block)) for x in (q, k, v))
    keys, values = (x[..., neighbours % blocks, :, :].flatten(-3, -2) for x in (ks, vs))
    return scaled_dot_product_attention(qs, keys, values).flatten(-3, -2)


# %% efficient/bigbird | wrong | a block listed twice counts twice
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend to the listed blocks: dense attention under `bigbird_mask`, exactly.

    Rows are computed apart, each as long as its own list: a row that lists every block does not
    widen the others. A row that lists none gives zeros. Time O(n m block d), memory O(n d). Source:
    Zaheer et al. 2020, section 2. Raises ValueError unless n = blocks x block, and for blocks that
    do not exist.
    """
    # TODO: leave out what stands for none
    # TODO: let each block of queries meet the blocks of keys that its row lists
    # TODO: attend to all blocks of a row as to one
    blocks = len(neighbours)
    if q.shape[-2] != blocks * block:
        raise ValueError("n")
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("no such block")
    parts = []
    for i in range(blocks):
        listed = neighbours[i][neighbours[i] >= 0]
        words = (listed[:, None] * block + torch.arange(block)).flatten()
        mine_ = q[..., i * block : (i + 1) * block, :]
        parts.append(scaled_dot_product_attention(mine_, k[..., words, :], v[..., words, :]))
    return torch.cat(parts, dim=-2)


# %% efficient/bigbird | wrong | not divided by the root of d_k
from course_lib.attention import dot_scores, softmax


def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend to the listed blocks: dense attention under `bigbird_mask`, exactly.

    Rows are computed apart, each as long as its own list: a row that lists every block does not
    widen the others. A row that lists none gives zeros. Time O(n m block d), memory O(n d). Source:
    Zaheer et al. 2020, section 2. Raises ValueError unless n = blocks x block, and for blocks that
    do not exist.
    """
    blocks = len(neighbours)
    if q.shape[-2] != blocks * block:
        raise ValueError("n")
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("no such block")
    parts = []
    for i in range(blocks):
        listed = neighbours[i][neighbours[i] >= 0].unique()
        words = (listed[:, None] * block + torch.arange(block)).flatten()
        weights = softmax(dot_scores(q[..., i * block : (i + 1) * block, :], k[..., words, :])) if len(words) else None
        parts.append(weights @ v[..., words, :] if len(words) else torch.zeros_like(v[..., :block, :]))
    return torch.cat(parts, dim=-2)


# %% efficient/bigbird | wrong | a softmax for each listed block, then the mean of the blocks
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend to the listed blocks: dense attention under `bigbird_mask`, exactly.

    Rows are computed apart, each as long as its own list: a row that lists every block does not
    widen the others. A row that lists none gives zeros. Time O(n m block d), memory O(n d). Source:
    Zaheer et al. 2020, section 2. Raises ValueError unless n = blocks x block, and for blocks that
    do not exist.
    """
    blocks = len(neighbours)
    if q.shape[-2] != blocks * block:
        raise ValueError("n")
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("no such block")
    qs, ks, vs = (x.unflatten(-2, (blocks, block)) for x in (q, k, v))
    parts = []
    for i, row in enumerate(neighbours.tolist()):
        listed = sorted({j for j in row if j >= 0})
        found = [scaled_dot_product_attention(qs[..., i, :, :], ks[..., j, :, :], vs[..., j, :, :]) for j in listed]
        parts.append(sum(found) / len(found) if found else torch.zeros_like(vs[..., i, :, :]))
    return torch.cat(parts, dim=-2)


# %% efficient/bigbird | wrong | an n that does not fit is cut off, not refused
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend to the listed blocks: dense attention under `bigbird_mask`, exactly.

    Rows are computed apart, each as long as its own list: a row that lists every block does not
    widen the others. A row that lists none gives zeros. Time O(n m block d), memory O(n d). Source:
    Zaheer et al. 2020, section 2. Raises ValueError unless n = blocks x block, and for blocks that
    do not exist.
    """
    blocks = len(neighbours)
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("no such block")
    parts = []
    for i in range(blocks):
        listed = neighbours[i][neighbours[i] >= 0].unique()
        words = (listed[:, None] * block + torch.arange(block)).flatten()
        words = words[words < k.shape[-2]]
        mine_ = q[..., i * block : (i + 1) * block, :]
        parts.append(scaled_dot_product_attention(mine_, k[..., words, :], v[..., words, :]))
    return torch.cat(parts, dim=-2)


# %% efficient/bigbird | wrong | blocks that do not exist are left out silently
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend to the listed blocks: dense attention under `bigbird_mask`, exactly.

    Rows are computed apart, each as long as its own list: a row that lists every block does not
    widen the others. A row that lists none gives zeros. Time O(n m block d), memory O(n d). Source:
    Zaheer et al. 2020, section 2. Raises ValueError unless n = blocks x block, and for blocks that
    do not exist.
    """
    blocks = len(neighbours)
    if q.shape[-2] != blocks * block:
        raise ValueError("n")
    parts = []
    for i in range(blocks):
        row = neighbours[i]
        listed = row[(row >= 0) & (row < blocks)].unique()
        words = (listed[:, None] * block + torch.arange(block)).flatten()
        mine_ = q[..., i * block : (i + 1) * block, :]
        parts.append(scaled_dot_product_attention(mine_, k[..., words, :], v[..., words, :]))
    return torch.cat(parts, dim=-2)


# %% efficient/bigbird | wrong | all rows are filled up to the longest: the same numbers, but a global row widens the others
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend to the listed blocks: dense attention under `bigbird_mask`, exactly.

    Rows are computed apart, each as long as its own list: a row that lists every block does not
    widen the others. A row that lists none gives zeros. Time O(n m block d), memory O(n d). Source:
    Zaheer et al. 2020, section 2. Raises ValueError unless n = blocks x block, and for blocks that
    do not exist.
    """
    # TODO: leave out what stands for none
    # TODO: let each block of queries meet the blocks of keys that its row lists
    # TODO: attend to all blocks of a row as to one
    blocks = len(neighbours)
    if q.shape[-2] != blocks * block:
        raise ValueError("n")
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("no such block")
    rows = torch.full((blocks, blocks), -1)
    for i in range(blocks):
        listed = neighbours[i][neighbours[i] >= 0].unique()
        rows[i, : len(listed)] = listed
    rows = rows[:, : max(1, int((rows >= 0).sum(1).max()))]
    qs, ks, vs = (x.unflatten(-2, (blocks, block)) for x in (q, k, v))
    keys, values = (x[..., rows.clamp(min=0), :, :].flatten(-3, -2) for x in (ks, vs))
    real = (rows >= 0).repeat_interleave(block, 1)[:, None]
    return scaled_dot_product_attention(qs, keys, values, real).flatten(-3, -2)


# %% efficient/operations | right | counts with the shapes of the products
def product(rows, inner, columns):
    return rows * inner * columns


def operations(kind: str, n: int, d: int) -> int:
    match kind:
        case "attention":
            return product(n, d, n) + product(n, n, d)
        case "rnn":
            return n * sum(product(1, d, d) for _ in ("word", "state"))
        case _:
            raise ValueError(f"{kind!r} is neither attention nor rnn")


# %% efficient/operations | wrong | attention scores the pairs, the averages are forgotten
def operations(kind: str, n: int, d: int) -> int:
    """Count the multiply-adds by which one layer mixes n words of size d.

    `attention` scores n^2 pairs and averages n values for each word: 2 n^2 d. `rnn` multiplies each
    word and each state by a matrix: 2 n d^2. The two are equal at n = d. Counts itself in no time.
    Source: Vaswani et al. 2017, table 1, whose orders are made exact; projections, biases and
    softmax are left out. Raises ValueError for another kind.
    """
    if kind == "attention":
        return n * n * d
    if kind == "rnn":
        return 2 * n * d * d
    raise ValueError(kind)


# %% efficient/operations | wrong | rnn and attention exchanged
def operations(kind: str, n: int, d: int) -> int:
    """Count the multiply-adds by which one layer mixes n words of size d.

    `attention` scores n^2 pairs and averages n values for each word: 2 n^2 d. `rnn` multiplies each
    word and each state by a matrix: 2 n d^2. The two are equal at n = d. Counts itself in no time.
    Source: Vaswani et al. 2017, table 1, whose orders are made exact; projections, biases and
    softmax are left out. Raises ValueError for another kind.
    """
    if kind == "rnn":
        return 2 * n * n * d
    if kind == "attention":
        return 2 * n * d * d
    raise ValueError(kind)


# %% efficient/operations | wrong | the rnn multiplies the state only
def operations(kind: str, n: int, d: int) -> int:
    """Count the multiply-adds by which one layer mixes n words of size d.

    `attention` scores n^2 pairs and averages n values for each word: 2 n^2 d. `rnn` multiplies each
    word and each state by a matrix: 2 n d^2. The two are equal at n = d. Counts itself in no time.
    Source: Vaswani et al. 2017, table 1, whose orders are made exact; projections, biases and
    softmax are left out. Raises ValueError for another kind.
    """
    if kind == "attention":
        return 2 * n * n * d
    if kind == "rnn":
        return n * d * d
    raise ValueError(kind)


# %% efficient/operations | wrong | projections are counted too
def operations(kind: str, n: int, d: int) -> int:
    """Count the multiply-adds by which one layer mixes n words of size d.

    `attention` scores n^2 pairs and averages n values for each word: 2 n^2 d. `rnn` multiplies each
    word and each state by a matrix: 2 n d^2. The two are equal at n = d. Counts itself in no time.
    Source: Vaswani et al. 2017, table 1, whose orders are made exact; projections, biases and
    softmax are left out. Raises ValueError for another kind.
    """
    if kind == "attention":
        return 2 * n**2 * d + 4 * n * d**2
    if kind == "rnn":
        return 2 * n * d**2
    raise ValueError(kind)


# %% efficient/operations | wrong | another kind counts as rnn
def operations(kind: str, n: int, d: int) -> int:
    """Count the multiply-adds by which one layer mixes n words of size d.

    `attention` scores n^2 pairs and averages n values for each word: 2 n^2 d. `rnn` multiplies each
    word and each state by a matrix: 2 n d^2. The two are equal at n = d. Counts itself in no time.
    Source: Vaswani et al. 2017, table 1, whose orders are made exact; projections, biases and
    softmax are left out. Raises ValueError for another kind.
    """
    # TODO: score every pair of words, then sum every value with every weight
    # TODO: at each word, multiply the input by one matrix and the state by another
    return 2 * n**2 * d if kind == "attention" else 2 * n * d**2


# %% efficient/operations | wrong | a pair is counted once: n (n - 1) / 2
def operations(kind: str, n: int, d: int) -> int:
    """Count the multiply-adds by which one layer mixes n words of size d.

    `attention` scores n^2 pairs and averages n values for each word: 2 n^2 d. `rnn` multiplies each
    word and each state by a matrix: 2 n d^2. The two are equal at n = d. Counts itself in no time.
    Source: Vaswani et al. 2017, table 1, whose orders are made exact; projections, biases and
    softmax are left out. Raises ValueError for another kind.
    """
    # TODO: score every pair of words, then sum every value with every weight
    # TODO: at each word, multiply the input by one matrix and the state by another
    if kind == "attention":
        return 2 * (n * (n - 1) // 2) * d
    if kind == "rnn":
        return 2 * n * d**2
    raise ValueError(kind)


# %% efficient/operations | wrong | multiply and add are counted apart
def operations(kind: str, n: int, d: int) -> int:
    """Count the multiply-adds by which one layer mixes n words of size d.

    `attention` scores n^2 pairs and averages n values for each word: 2 n^2 d. `rnn` multiplies each
    word and each state by a matrix: 2 n d^2. The two are equal at n = d. Counts itself in no time.
    Source: Vaswani et al. 2017, table 1, whose orders are made exact; projections, biases and
    softmax are left out. Raises ValueError for another kind.
    """
    if kind == "attention":
        return 4 * n * n * d
    if kind == "rnn":
        return 4 * n * d * d
    raise ValueError(kind)


# %% efficient/operations | wrong | returns float
def operations(kind: str, n: int, d: int) -> int:
    """Count the multiply-adds by which one layer mixes n words of size d.

    `attention` scores n^2 pairs and averages n values for each word: 2 n^2 d. `rnn` multiplies each
    word and each state by a matrix: 2 n d^2. The two are equal at n = d. Counts itself in no time.
    Source: Vaswani et al. 2017, table 1, whose orders are made exact; projections, biases and
    softmax are left out. Raises ValueError for another kind.
    """
    if kind == "attention":
        return 2.0 * n**2 * d
    if kind == "rnn":
        return 2.0 * n * d**2
    raise ValueError(kind)


# %% efficient/operations | wrong | an unknown kind raises KeyError
def operations(kind: str, n: int, d: int) -> int:
    """Count the multiply-adds by which one layer mixes n words of size d.

    `attention` scores n^2 pairs and averages n values for each word: 2 n^2 d. `rnn` multiplies each
    word and each state by a matrix: 2 n d^2. The two are equal at n = d. Counts itself in no time.
    Source: Vaswani et al. 2017, table 1, whose orders are made exact; projections, biases and
    softmax are left out. Raises ValueError for another kind.
    """
    # TODO: score every pair of words, then sum every value with every weight
    # TODO: at each word, multiply the input by one matrix and the state by another
    return {"attention": 2 * n**2 * d, "rnn": 2 * n * d**2}[kind]


# %% efficient/linear | right | numerator and denominator apart, a plain loop where causal
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Weigh values by products of positive features: o_i = phi(q_i) S / phi(q_i) . z.

    phi(x) = elu(x) + 1, S = sum_j phi(k_j) v_j^T, z = sum_j phi(k_j). With `causal` the sums run
    over j <= i. No score is divided by a root. Where phi(q_i) . z is 0, the row is zeros. Time
    O(n d_k d_v), memory O(n (d_k + d_v)). Source: Katharopoulos et al. 2020, eq. 5 and 7, and
    causal eq. 9.
    """
    feature = lambda x: torch.where(x > 0, x + 1, torch.exp(x.clamp(max=0)))
    a, b = feature(q), feature(k)


    def read(row, s, z):
        above, below = (row.unsqueeze(-2) @ s).squeeze(-2), (row * z).sum(-1, keepdim=True)
        return torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below))


    if not causal:
        s, z = b.mT @ v, b.sum(-2)
        return read(a, s.unsqueeze(-3), z.unsqueeze(-2))
    s = v.new_zeros(*v.shape[:-2], k.shape[-1], v.shape[-1])
    z = k.new_zeros(*k.shape[:-2], k.shape[-1])
    rows = []
    for i in range(q.shape[-2]):
        s = s + b[..., i, :, None] * v[..., i, None, :]
        z = z + b[..., i, :]
        rows.append(read(a[..., i, :], s, z))
    return torch.stack(rows, dim=-2) if rows else v.clone()


# %% efficient/linear | wrong | ignores `causal`
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Weigh values by products of positive features: o_i = phi(q_i) S / phi(q_i) . z.

    phi(x) = elu(x) + 1, S = sum_j phi(k_j) v_j^T, z = sum_j phi(k_j). With `causal` the sums run
    over j <= i. No score is divided by a root. Where phi(q_i) . z is 0, the row is zeros. Time
    O(n d_k d_v), memory O(n (d_k + d_v)). Source: Katharopoulos et al. 2020, eq. 5 and 7, and
    causal eq. 9.
    """
    a, b = F.elu(q) + 1, F.elu(k) + 1
    below = a @ b.sum(-2).unsqueeze(-1)
    above = a @ (b.mT @ v)
    return torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below))


# %% efficient/linear | wrong | makes the square of all pairs: the same numbers, in time and memory O(n^2)
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Weigh values by products of positive features: o_i = phi(q_i) S / phi(q_i) . z.

    phi(x) = elu(x) + 1, S = sum_j phi(k_j) v_j^T, z = sum_j phi(k_j). With `causal` the sums run
    over j <= i. No score is divided by a root. Where phi(q_i) . z is 0, the row is zeros. Time
    O(n d_k d_v), memory O(n (d_k + d_v)). Source: Katharopoulos et al. 2020, eq. 5 and 7, and
    causal eq. 9.
    """
    a, b = F.elu(q) + 1, F.elu(k) + 1
    weights = a @ b.mT
    if causal:
        weights = weights.tril()
    total = weights.sum(-1, keepdim=True)
    return (weights / torch.where(total == 0, 1.0, total)) @ v


# %% efficient/linear | wrong | 0 / 0 where the features of a row vanish
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Weigh values by products of positive features: o_i = phi(q_i) S / phi(q_i) . z.

    phi(x) = elu(x) + 1, S = sum_j phi(k_j) v_j^T, z = sum_j phi(k_j). With `causal` the sums run
    over j <= i. No score is divided by a root. Where phi(q_i) . z is 0, the row is zeros. Time
    O(n d_k d_v), memory O(n (d_k + d_v)). Source: Katharopoulos et al. 2020, eq. 5 and 7, and
    causal eq. 9.
    """
    # TODO: keep S and z side by side in one state, with nothing in it yet
    # TODO: causal: go through the words, each one adds itself to the state and reads it
    # TODO: otherwise: add all words to the state, then read it
    a, b = F.elu(q) + 1, F.elu(k) + 1
    if causal:
        s, z = v.new_zeros(*v.shape[:-2], k.shape[-1], v.shape[-1]), torch.zeros_like(b[..., 0, :])
        out = []
        for i in range(q.shape[-2]):
            s = s + b[..., i, :, None] * v[..., i, None, :]
            z = z + b[..., i, :]
            row = a[..., i, None, :]
            out.append(row @ s / (row @ z.unsqueeze(-1)))
        return torch.cat(out, dim=-2)
    return a @ (b.mT @ v) / (a @ b.sum(-2).unsqueeze(-1))


# %% efficient/linear | wrong | relu instead of elu + 1
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Weigh values by products of positive features: o_i = phi(q_i) S / phi(q_i) . z.

    phi(x) = elu(x) + 1, S = sum_j phi(k_j) v_j^T, z = sum_j phi(k_j). With `causal` the sums run
    over j <= i. No score is divided by a root. Where phi(q_i) . z is 0, the row is zeros. Time
    O(n d_k d_v), memory O(n (d_k + d_v)). Source: Katharopoulos et al. 2020, eq. 5 and 7, and
    causal eq. 9.
    """
    a, b = torch.relu(q), torch.relu(k)
    if causal:
        s = torch.cumsum(b.unsqueeze(-1) * v.unsqueeze(-2), dim=-3)
        z = b.cumsum(-2)
        above, below = (a.unsqueeze(-2) @ s).squeeze(-2), (a * z).sum(-1, keepdim=True)
    else:
        above, below = a @ (b.mT @ v), a @ b.sum(-2).unsqueeze(-1)
    return torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below))


# %% efficient/linear | wrong | not divided by the sum z
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Weigh values by products of positive features: o_i = phi(q_i) S / phi(q_i) . z.

    phi(x) = elu(x) + 1, S = sum_j phi(k_j) v_j^T, z = sum_j phi(k_j). With `causal` the sums run
    over j <= i. No score is divided by a root. Where phi(q_i) . z is 0, the row is zeros. Time
    O(n d_k d_v), memory O(n (d_k + d_v)). Source: Katharopoulos et al. 2020, eq. 5 and 7, and
    causal eq. 9.
    """
    a, b = F.elu(q) + 1, F.elu(k) + 1
    if causal:
        s = torch.cumsum(b.unsqueeze(-1) * v.unsqueeze(-2), dim=-3)
        return (a.unsqueeze(-2) @ s).squeeze(-2)
    return a @ (b.mT @ v)


# %% efficient/linear | wrong | causal sums stop one word early
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Weigh values by products of positive features: o_i = phi(q_i) S / phi(q_i) . z.

    phi(x) = elu(x) + 1, S = sum_j phi(k_j) v_j^T, z = sum_j phi(k_j). With `causal` the sums run
    over j <= i. No score is divided by a root. Where phi(q_i) . z is 0, the row is zeros. Time
    O(n d_k d_v), memory O(n (d_k + d_v)). Source: Katharopoulos et al. 2020, eq. 5 and 7, and
    causal eq. 9.
    """
    a, b = F.elu(q) + 1, F.elu(k) + 1
    if not causal:
        return a @ (b.mT @ v) / (a @ b.sum(-2).unsqueeze(-1))
    s, z = v.new_zeros(*v.shape[:-2], k.shape[-1], v.shape[-1]), torch.zeros_like(b[..., 0, :])
    out = []
    for i in range(q.shape[-2]):
        row = a[..., i, None, :]
        below = row @ z.unsqueeze(-1)
        out.append(row @ s / torch.where(below == 0, 1.0, below))
        s = s + b[..., i, :, None] * v[..., i, None, :]
        z = z + b[..., i, :]
    return torch.cat(out, dim=-2)


# %% efficient/linear | wrong | the causal form keeps a state of d_k x d_v for every word (cumsum), O(n d_k d_v) of memory
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Weigh values by products of positive features: o_i = phi(q_i) S / phi(q_i) . z.

    phi(x) = elu(x) + 1, S = sum_j phi(k_j) v_j^T, z = sum_j phi(k_j). With `causal` the sums run
    over j <= i. No score is divided by a root. Where phi(q_i) . z is 0, the row is zeros. Time
    O(n d_k d_v), memory O(n (d_k + d_v)). Source: Katharopoulos et al. 2020, eq. 5 and 7, and
    causal eq. 9.
    """
    # TODO: keep S and z side by side in one state, with nothing in it yet
    # TODO: causal: go through the words, each one adds itself to the state and reads it
    # TODO: otherwise: add all words to the state, then read it
    a, b = F.elu(q) + 1, F.elu(k) + 1
    if causal:
        s = torch.cumsum(b.unsqueeze(-1) * v.unsqueeze(-2), dim=-3)
        z = torch.cumsum(b, dim=-2)
        above, below = (a.unsqueeze(-2) @ s).squeeze(-2), (a * z).sum(-1, keepdim=True)
    else:
        above, below = a @ (b.mT @ v), a @ b.sum(-2).unsqueeze(-1)
    return torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below))


# %% efficient/linear | wrong | the scores are divided by the root of d_k inside the features
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Weigh values by products of positive features: o_i = phi(q_i) S / phi(q_i) . z.

    phi(x) = elu(x) + 1, S = sum_j phi(k_j) v_j^T, z = sum_j phi(k_j). With `causal` the sums run
    over j <= i. No score is divided by a root. Where phi(q_i) . z is 0, the row is zeros. Time
    O(n d_k d_v), memory O(n (d_k + d_v)). Source: Katharopoulos et al. 2020, eq. 5 and 7, and
    causal eq. 9.
    """
    root = q.shape[-1] ** 0.25
    a, b = F.elu(q / root) + 1, F.elu(k / root) + 1
    if causal:
        weights = (a @ b.mT).tril()
        return weights / weights.sum(-1, keepdim=True) @ v
    return a @ (b.mT @ v) / (a @ b.sum(-2).unsqueeze(-1))


# %% efficient/linformer | right | keeps mixtures as rows of an einsum and writes the softmax over mixtures by hand
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    """Attend to k mixtures of the words: softmax(Q (E^T K)^T / sqrt(d_k)) F^T V.

    With identities for `e` and `f` this is dense attention; otherwise it approximates it, as far as
    its matrix of weights has a low rank. Every mixture holds words from both sides, so there is no
    causal form. Time O(n k d), memory O((n + k) d). Source: Wang et al. 2020a, eq. 7, whose E and F
    are our e and f transposed. Raises ValueError for projections of another length than n, or of
    unequal shapes.
    """
    # TODO: mix the n keys into k, and the n values
    # TODO: attend to the mixtures
    n = k.shape[-2]
    if e.shape != f.shape or e.shape[0] != n:
        raise ValueError(f"both projections must have the same shape, with {n} rows")
    keys = torch.einsum("nm,...nd->...md", e, k)
    values = torch.einsum("nm,...nd->...md", f, v)
    scores = torch.einsum("...nd,...md->...nm", q, keys) * k.shape[-1] ** -0.5
    scores = (scores - scores.amax(-1, keepdim=True)).exp()
    return (scores / scores.sum(-1, keepdim=True)) @ values


# %% efficient/linformer | wrong | e mixes the values too
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    """Attend to k mixtures of the words: softmax(Q (E^T K)^T / sqrt(d_k)) F^T V.

    With identities for `e` and `f` this is dense attention; otherwise it approximates it, as far as
    its matrix of weights has a low rank. Every mixture holds words from both sides, so there is no
    causal form. Time O(n k d), memory O((n + k) d). Source: Wang et al. 2020a, eq. 7, whose E and F
    are our e and f transposed. Raises ValueError for projections of another length than n, or of
    unequal shapes.
    """
    if e.shape != f.shape or len(e) != k.shape[-2]:
        raise ValueError("projections")
    return scaled_dot_product_attention(q, e.T @ k, e.T @ v)


# %% efficient/linformer | wrong | e and f exchanged
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    """Attend to k mixtures of the words: softmax(Q (E^T K)^T / sqrt(d_k)) F^T V.

    With identities for `e` and `f` this is dense attention; otherwise it approximates it, as far as
    its matrix of weights has a low rank. Every mixture holds words from both sides, so there is no
    causal form. Time O(n k d), memory O((n + k) d). Source: Wang et al. 2020a, eq. 7, whose E and F
    are our e and f transposed. Raises ValueError for projections of another length than n, or of
    unequal shapes.
    """
    if e.shape != f.shape or len(e) != k.shape[-2]:
        raise ValueError("projections")
    return scaled_dot_product_attention(q, f.T @ k, e.T @ v)


# %% efficient/linformer | wrong | mixes the queries as well, so there are k rows
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    """Attend to k mixtures of the words: softmax(Q (E^T K)^T / sqrt(d_k)) F^T V.

    With identities for `e` and `f` this is dense attention; otherwise it approximates it, as far as
    its matrix of weights has a low rank. Every mixture holds words from both sides, so there is no
    causal form. Time O(n k d), memory O((n + k) d). Source: Wang et al. 2020a, eq. 7, whose E and F
    are our e and f transposed. Raises ValueError for projections of another length than n, or of
    unequal shapes.
    """
    if e.shape != f.shape or len(e) != k.shape[-2]:
        raise ValueError("projections")
    return scaled_dot_product_attention(e.T @ q, e.T @ k, f.T @ v)


# %% efficient/linformer | wrong | makes the n x n scores first and mixes them: the same numbers, in time and memory O(n^2)
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    """Attend to k mixtures of the words: softmax(Q (E^T K)^T / sqrt(d_k)) F^T V.

    With identities for `e` and `f` this is dense attention; otherwise it approximates it, as far as
    its matrix of weights has a low rank. Every mixture holds words from both sides, so there is no
    causal form. Time O(n k d), memory O((n + k) d). Source: Wang et al. 2020a, eq. 7, whose E and F
    are our e and f transposed. Raises ValueError for projections of another length than n, or of
    unequal shapes.
    """
    if e.shape != f.shape or len(e) != k.shape[-2]:
        raise ValueError("projections")
    scores = dot_scores(q, k) / k.shape[-1] ** 0.5
    return softmax(scores @ e) @ (f.T @ v)


# %% efficient/linformer | wrong | softmax over the words, then mixed
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    """Attend to k mixtures of the words: softmax(Q (E^T K)^T / sqrt(d_k)) F^T V.

    With identities for `e` and `f` this is dense attention; otherwise it approximates it, as far as
    its matrix of weights has a low rank. Every mixture holds words from both sides, so there is no
    causal form. Time O(n k d), memory O((n + k) d). Source: Wang et al. 2020a, eq. 7, whose E and F
    are our e and f transposed. Raises ValueError for projections of another length than n, or of
    unequal shapes.
    """
    if e.shape != f.shape or len(e) != k.shape[-2]:
        raise ValueError("projections")
    weights = softmax(dot_scores(q, k) / k.shape[-1] ** 0.5)
    return weights @ e @ (f.T @ v)


# %% efficient/linformer | wrong | longer projections are cut to n, as if the text were padded
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    """Attend to k mixtures of the words: softmax(Q (E^T K)^T / sqrt(d_k)) F^T V.

    With identities for `e` and `f` this is dense attention; otherwise it approximates it, as far as
    its matrix of weights has a low rank. Every mixture holds words from both sides, so there is no
    causal form. Time O(n k d), memory O((n + k) d). Source: Wang et al. 2020a, eq. 7, whose E and F
    are our e and f transposed. Raises ValueError for projections of another length than n, or of
    unequal shapes.
    """
    if e.shape != f.shape:
        raise ValueError("projections")
    n = k.shape[-2]
    return scaled_dot_product_attention(q, e[:n].T @ k, f[:n].T @ v)


# %% efficient/linformer | wrong | e and f of unequal width with the same n are not refused here
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    """Attend to k mixtures of the words: softmax(Q (E^T K)^T / sqrt(d_k)) F^T V.

    With identities for `e` and `f` this is dense attention; otherwise it approximates it, as far as
    its matrix of weights has a low rank. Every mixture holds words from both sides, so there is no
    causal form. Time O(n k d), memory O((n + k) d). Source: Wang et al. 2020a, eq. 7, whose E and F
    are our e and f transposed. Raises ValueError for projections of another length than n, or of
    unequal shapes.
    """
    if len(e) != k.shape[-2] or len(f) != v.shape[-2]:
        raise ValueError("projections")
    width = min(e.shape[1], f.shape[1])
    return scaled_dot_product_attention(q, e[:, :width].T @ k, f[:, :width].T @ v)


# %% efficient/linformer | wrong | divides by the root of the number of mixtures
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    """Attend to k mixtures of the words: softmax(Q (E^T K)^T / sqrt(d_k)) F^T V.

    With identities for `e` and `f` this is dense attention; otherwise it approximates it, as far as
    its matrix of weights has a low rank. Every mixture holds words from both sides, so there is no
    causal form. Time O(n k d), memory O((n + k) d). Source: Wang et al. 2020a, eq. 7, whose E and F
    are our e and f transposed. Raises ValueError for projections of another length than n, or of
    unequal shapes.
    """
    # TODO: mix the n keys into k, and the n values
    # TODO: attend to the mixtures
    if e.shape != f.shape or len(e) != k.shape[-2]:
        raise ValueError("projections")
    return softmax(q @ (e.T @ k).mT / e.shape[-1] ** 0.5) @ (f.T @ v)


# %% efficient/linformer | wrong | no check: a matrix product raises RuntimeError
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    """Attend to k mixtures of the words: softmax(Q (E^T K)^T / sqrt(d_k)) F^T V.

    With identities for `e` and `f` this is dense attention; otherwise it approximates it, as far as
    its matrix of weights has a low rank. Every mixture holds words from both sides, so there is no
    causal form. Time O(n k d), memory O((n + k) d). Source: Wang et al. 2020a, eq. 7, whose E and F
    are our e and f transposed. Raises ValueError for projections of another length than n, or of
    unequal shapes.
    """
    keys = einsum(e, k, "n m, ... n d -> ... m d")
    values = einsum(f, v, "n m, ... n d -> ... m d")
    return scaled_dot_product_attention(q, keys, values)


# %% efficient/lsh_buckets | right | largest absolute reach, and the sign says which side
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    """Give each word the bucket of the direction in which it points: argmax [x R, -x R].

    Words that point alike tend to share their bucket. Time O(n d b) and memory O(n b) for b
    buckets. Source: Kitaev et al. 2020, section 2, after Andoni et al. 2015.
    """
    reach = torch.matmul(x, rotations)
    half = rotations.shape[-1]
    up, down = reach.max(dim=-1), reach.min(dim=-1)
    return torch.where(up.values >= -down.values, up.indices, half + down.indices)


# %% efficient/lsh_buckets | wrong | opposite directions are not counted
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    """Give each word the bucket of the direction in which it points: argmax [x R, -x R].

    Words that point alike tend to share their bucket. Time O(n d b) and memory O(n b) for b
    buckets. Source: Kitaev et al. 2020, section 2, after Andoni et al. 2015.
    """
    # TODO: measure how far each word reaches in each direction
    # TODO: count the opposite directions too, and take the one in which it reaches farthest
    return (x @ rotations).argmax(-1)


# %% efficient/lsh_buckets | wrong | opposite directions share a bucket
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    """Give each word the bucket of the direction in which it points: argmax [x R, -x R].

    Words that point alike tend to share their bucket. Time O(n d b) and memory O(n b) for b
    buckets. Source: Kitaev et al. 2020, section 2, after Andoni et al. 2015.
    """
    return (x @ rotations).abs().argmax(-1)


# %% efficient/lsh_buckets | wrong | the opposite directions come first
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    """Give each word the bucket of the direction in which it points: argmax [x R, -x R].

    Words that point alike tend to share their bucket. Time O(n d b) and memory O(n b) for b
    buckets. Source: Kitaev et al. 2020, section 2, after Andoni et al. 2015.
    """
    # TODO: measure how far each word reaches in each direction
    # TODO: count the opposite directions too, and take the one in which it reaches farthest
    reach = x @ rotations
    return torch.cat([-reach, reach], dim=-1).argmax(-1)


# %% efficient/lsh_buckets | wrong | the nearest by argmin
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    """Give each word the bucket of the direction in which it points: argmax [x R, -x R].

    Words that point alike tend to share their bucket. Time O(n d b) and memory O(n b) for b
    buckets. Source: Kitaev et al. 2020, section 2, after Andoni et al. 2015.
    """
    reach = x @ rotations
    return torch.cat([reach, -reach], dim=-1).argmin(-1)


# %% efficient/lsh_buckets | wrong | joined along the words instead of the directions
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    """Give each word the bucket of the direction in which it points: argmax [x R, -x R].

    Words that point alike tend to share their bucket. Time O(n d b) and memory O(n b) for b
    buckets. Source: Kitaev et al. 2020, section 2, after Andoni et al. 2015.
    """
    # TODO: measure how far each word reaches in each direction
    # TODO: count the opposite directions too, and take the one in which it reaches farthest
    reach = x @ rotations
    return torch.cat([reach, -reach], dim=-2).argmax(-1)


# %% efficient/lsh_buckets | wrong | a number in binary, from the signs of all directions
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    """Give each word the bucket of the direction in which it points: argmax [x R, -x R].

    Words that point alike tend to share their bucket. Time O(n d b) and memory O(n b) for b
    buckets. Source: Kitaev et al. 2020, section 2, after Andoni et al. 2015.
    """
    # TODO: measure how far each word reaches in each direction
    # TODO: count the opposite directions too, and take the one in which it reaches farthest
    bits = (x @ rotations > 0).long()
    return (bits * 2 ** torch.arange(rotations.shape[-1])).sum(-1)


# %% efficient/lsh_buckets | wrong | interleaved: 2c for a direction and 2c + 1 for its opposite
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    """Give each word the bucket of the direction in which it points: argmax [x R, -x R].

    Words that point alike tend to share their bucket. Time O(n d b) and memory O(n b) for b
    buckets. Source: Kitaev et al. 2020, section 2, after Andoni et al. 2015.
    """
    reach = x @ rotations
    return torch.stack([reach, -reach], dim=-1).flatten(-2).argmax(-1)


# %% efficient/lsh_buckets | wrong | the place of the largest over the words (dim 0)
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    """Give each word the bucket of the direction in which it points: argmax [x R, -x R].

    Words that point alike tend to share their bucket. Time O(n d b) and memory O(n b) for b
    buckets. Source: Kitaev et al. 2020, section 2, after Andoni et al. 2015.
    """
    reach = x @ rotations
    return torch.cat([reach, -reach], dim=-1).argmax(0)


# %% efficient/lsh_buckets | wrong | keeps the reach instead of the number of the direction
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    """Give each word the bucket of the direction in which it points: argmax [x R, -x R].

    Words that point alike tend to share their bucket. Time O(n d b) and memory O(n b) for b
    buckets. Source: Kitaev et al. 2020, section 2, after Andoni et al. 2015.
    """
    reach = x @ rotations
    return torch.cat([reach, -reach], dim=-1).amax(-1)


# %% efficient/lsh | right | sorts, pads the chunk before the first by rolling, and hides it by its number
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    n = qk.shape[-2]
    if chunk < 1 or n % chunk:
        raise ValueError(f"chunks of {chunk} words do not cover {n} words")
    order = torch.sort(buckets, dim=-1, stable=True).indices
    take = lambda x: x.gather(-2, order.unsqueeze(-1).expand(*order.shape, x.shape[-1]))
    rows = lambda x: x.unflatten(-2 if x.dim() == qk.dim() else -1, (n // chunk, chunk))
    unit = nn.functional.normalize(qk, dim=-1)
    q, k, values = rows(take(qk)), rows(take(unit)), rows(take(v))
    place, bucket = rows(order), rows(buckets.gather(-1, order))
    k, values = (torch.cat([x.roll(1, dims=-3), x], dim=-2) for x in (k, values))
    their_place, their_bucket = (torch.cat([x.roll(1, dims=-2), x], dim=-1) for x in (place, bucket))
    sees = bucket.unsqueeze(-1) == their_bucket.unsqueeze(-2)
    sees = sees & (place.unsqueeze(-1) != their_place.unsqueeze(-2))
    if causal:
        sees = sees & (place.unsqueeze(-1) > their_place.unsqueeze(-2))
    first = torch.zeros(n // chunk, 1, 2 * chunk, dtype=torch.bool, device=qk.device)
    first[:1, :, :chunk] = True
    sees = sees & ~first
    found = scaled_dot_product_attention(q, k, values, sees)
    found = torch.where(sees.any(-1, keepdim=True), found, rows(take(v))).flatten(-3, -2)
    back = order.argsort(-1)
    return found.gather(-2, back.unsqueeze(-1).expand(*back.shape, v.shape[-1]))


# %% efficient/lsh | wrong | a word looks at itself as well
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    # TODO: sort the words by bucket; within a bucket they keep their order
    # TODO: let the words of each chunk see those of the same bucket, there and in the chunk before
    # TODO: attend in this order to keys of length 1, and put the words back
    # TODO: a word that sees nothing else looks at itself
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    back = order.argsort(dim=-1)


    def sort(x, order):
        return torch.take_along_dim(x, order.unsqueeze(-1), dim=-2)


    def with_before(x):
        before = torch.cat([torch.zeros_like(x[..., :1, :, :]), x[..., :-1, :, :]], dim=-3)
        return torch.cat([before, x], dim=-2)


    def cut(x):
        return rearrange(x, "... (c w) d -> ... c w d", w=chunk)


    keys = nn.functional.normalize(qk, dim=-1)
    q, k, own = (cut(sort(x, order)) for x in (qk, keys, v))
    place = cut(order.unsqueeze(-1)) + 1
    bucket = cut(torch.take_along_dim(buckets, order, dim=-1).unsqueeze(-1))
    places = with_before(place).mT
    sees = (bucket == with_before(bucket).mT) & (places > 0)
    if causal:
        sees = sees & (places <= place)
    found = scaled_dot_product_attention(q, with_before(k), with_before(own), sees)
    found = torch.where(sees.any(-1, keepdim=True), found, own)
    return sort(rearrange(found, "... c w d -> ... (c w) d"), back)


# %% efficient/lsh | wrong | ignores `causal`
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    back = order.argsort(dim=-1)


    def sort(x, order):
        return torch.take_along_dim(x, order.unsqueeze(-1), dim=-2)


    def with_before(x):
        before = torch.cat([torch.zeros_like(x[..., :1, :, :]), x[..., :-1, :, :]], dim=-3)
        return torch.cat([before, x], dim=-2)


    def cut(x):
        return rearrange(x, "... (c w) d -> ... c w d", w=chunk)


    keys = nn.functional.normalize(qk, dim=-1)
    q, k, own = (cut(sort(x, order)) for x in (qk, keys, v))
    place = cut(order.unsqueeze(-1)) + 1
    bucket = cut(torch.take_along_dim(buckets, order, dim=-1).unsqueeze(-1))
    places = with_before(place).mT
    sees = (bucket == with_before(bucket).mT) & (places > 0) & (places != place)
    found = scaled_dot_product_attention(q, with_before(k), with_before(own), sees)
    found = torch.where(sees.any(-1, keepdim=True), found, own)
    return sort(rearrange(found, "... c w d -> ... (c w) d"), back)


# %% efficient/lsh | wrong | causal hides the words before and shows the later ones
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    # TODO: sort the words by bucket; within a bucket they keep their order
    # TODO: let the words of each chunk see those of the same bucket, there and in the chunk before
    # TODO: attend in this order to keys of length 1, and put the words back
    # TODO: a word that sees nothing else looks at itself
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    back = order.argsort(dim=-1)


    def sort(x, order):
        return torch.take_along_dim(x, order.unsqueeze(-1), dim=-2)


    def with_before(x):
        before = torch.cat([torch.zeros_like(x[..., :1, :, :]), x[..., :-1, :, :]], dim=-3)
        return torch.cat([before, x], dim=-2)


    def cut(x):
        return rearrange(x, "... (c w) d -> ... c w d", w=chunk)


    keys = nn.functional.normalize(qk, dim=-1)
    q, k, own = (cut(sort(x, order)) for x in (qk, keys, v))
    place = cut(order.unsqueeze(-1)) + 1
    bucket = cut(torch.take_along_dim(buckets, order, dim=-1).unsqueeze(-1))
    places = with_before(place).mT
    sees = (bucket == with_before(bucket).mT) & (places > 0) & (places != place)
    if causal:
        sees = sees & (places > place)
    found = scaled_dot_product_attention(q, with_before(k), with_before(own), sees)
    found = torch.where(sees.any(-1, keepdim=True), found, own)
    return sort(rearrange(found, "... c w d -> ... (c w) d"), back)


# %% efficient/lsh | wrong | the results stay in the sorted order
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    # TODO: sort the words by bucket; within a bucket they keep their order
    # TODO: let the words of each chunk see those of the same bucket, there and in the chunk before
    # TODO: attend in this order to keys of length 1, and put the words back
    # TODO: a word that sees nothing else looks at itself
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    back = order.argsort(dim=-1)


    def sort(x, order):
        return torch.take_along_dim(x, order.unsqueeze(-1), dim=-2)


    def with_before(x):
        before = torch.cat([torch.zeros_like(x[..., :1, :, :]), x[..., :-1, :, :]], dim=-3)
        return torch.cat([before, x], dim=-2)


    def cut(x):
        return rearrange(x, "... (c w) d -> ... c w d", w=chunk)


    keys = nn.functional.normalize(qk, dim=-1)
    q, k, own = (cut(sort(x, order)) for x in (qk, keys, v))
    place = cut(order.unsqueeze(-1)) + 1
    bucket = cut(torch.take_along_dim(buckets, order, dim=-1).unsqueeze(-1))
    places = with_before(place).mT
    sees = (bucket == with_before(bucket).mT) & (places > 0) & (places != place)
    if causal:
        sees = sees & (places < place)
    found = scaled_dot_product_attention(q, with_before(k), with_before(own), sees)
    found = torch.where(sees.any(-1, keepdim=True), found, own)
    return rearrange(found, "... c w d -> ... (c w) d")


# %% efficient/lsh | wrong | the way back sorts by the same order once more
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)


    def sort(x, order):
        return torch.take_along_dim(x, order.unsqueeze(-1), dim=-2)


    def with_before(x):
        before = torch.cat([torch.zeros_like(x[..., :1, :, :]), x[..., :-1, :, :]], dim=-3)
        return torch.cat([before, x], dim=-2)


    def cut(x):
        return rearrange(x, "... (c w) d -> ... c w d", w=chunk)


    keys = nn.functional.normalize(qk, dim=-1)
    q, k, own = (cut(sort(x, order)) for x in (qk, keys, v))
    place = cut(order.unsqueeze(-1)) + 1
    bucket = cut(torch.take_along_dim(buckets, order, dim=-1).unsqueeze(-1))
    places = with_before(place).mT
    sees = (bucket == with_before(bucket).mT) & (places > 0) & (places != place)
    if causal:
        sees = sees & (places < place)
    found = scaled_dot_product_attention(q, with_before(k), with_before(own), sees)
    found = torch.where(sees.any(-1, keepdim=True), found, own)
    return sort(rearrange(found, "... c w d -> ... (c w) d"), order)


# %% efficient/lsh | wrong | keys keep their length
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    back = order.argsort(dim=-1)


    def sort(x, order):
        return torch.take_along_dim(x, order.unsqueeze(-1), dim=-2)


    def with_before(x):
        before = torch.cat([torch.zeros_like(x[..., :1, :, :]), x[..., :-1, :, :]], dim=-3)
        return torch.cat([before, x], dim=-2)


    def cut(x):
        return rearrange(x, "... (c w) d -> ... c w d", w=chunk)


    q, k, own = (cut(sort(x, order)) for x in (qk, qk, v))
    place = cut(order.unsqueeze(-1)) + 1
    bucket = cut(torch.take_along_dim(buckets, order, dim=-1).unsqueeze(-1))
    places = with_before(place).mT
    sees = (bucket == with_before(bucket).mT) & (places > 0) & (places != place)
    if causal:
        sees = sees & (places < place)
    found = scaled_dot_product_attention(q, with_before(k), with_before(own), sees)
    found = torch.where(sees.any(-1, keepdim=True), found, own)
    return sort(rearrange(found, "... c w d -> ... (c w) d"), back)


# %% efficient/lsh | wrong | queries are brought to length one too
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    # TODO: sort the words by bucket; within a bucket they keep their order
    # TODO: let the words of each chunk see those of the same bucket, there and in the chunk before
    # TODO: attend in this order to keys of length 1, and put the words back
    # TODO: a word that sees nothing else looks at itself
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    back = order.argsort(dim=-1)


    def sort(x, order):
        return torch.take_along_dim(x, order.unsqueeze(-1), dim=-2)


    def with_before(x):
        before = torch.cat([torch.zeros_like(x[..., :1, :, :]), x[..., :-1, :, :]], dim=-3)
        return torch.cat([before, x], dim=-2)


    def cut(x):
        return rearrange(x, "... (c w) d -> ... c w d", w=chunk)


    keys = nn.functional.normalize(qk, dim=-1)
    q, k, own = (cut(sort(x, order)) for x in (keys, keys, v))
    place = cut(order.unsqueeze(-1)) + 1
    bucket = cut(torch.take_along_dim(buckets, order, dim=-1).unsqueeze(-1))
    places = with_before(place).mT
    sees = (bucket == with_before(bucket).mT) & (places > 0) & (places != place)
    if causal:
        sees = sees & (places < place)
    found = scaled_dot_product_attention(q, with_before(k), with_before(own), sees)
    found = torch.where(sees.any(-1, keepdim=True), found, own)
    return sort(rearrange(found, "... c w d -> ... (c w) d"), back)


# %% efficient/lsh | wrong | only its own chunk is seen, not the one before
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    back = order.argsort(dim=-1)


    def sort(x, order):
        return torch.take_along_dim(x, order.unsqueeze(-1), dim=-2)


    def with_before(x):
        before = torch.cat([torch.zeros_like(x[..., :1, :, :]), x[..., :-1, :, :]], dim=-3)
        return torch.cat([before, x], dim=-2)


    def cut(x):
        return rearrange(x, "... (c w) d -> ... c w d", w=chunk)


    keys = nn.functional.normalize(qk, dim=-1)
    q, k, own = (cut(sort(x, order)) for x in (qk, keys, v))
    place = cut(order.unsqueeze(-1)) + 1
    bucket = cut(torch.take_along_dim(buckets, order, dim=-1).unsqueeze(-1))
    places = with_before(place).mT
    sees = (bucket == with_before(bucket).mT) & (places > 0) & (places != place)
    sees[..., :chunk] = False
    if causal:
        sees = sees & (places < place)
    found = scaled_dot_product_attention(q, with_before(k), with_before(own), sees)
    found = torch.where(sees.any(-1, keepdim=True), found, own)
    return sort(rearrange(found, "... c w d -> ... (c w) d"), back)


# %% efficient/lsh | wrong | the first chunk sees the last one
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    # TODO: sort the words by bucket; within a bucket they keep their order
    # TODO: let the words of each chunk see those of the same bucket, there and in the chunk before
    # TODO: attend in this order to keys of length 1, and put the words back
    # TODO: a word that sees nothing else looks at itself
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    back = order.argsort(dim=-1)


    def sort(x, order):
        return torch.take_along_dim(x, order.unsqueeze(-1), dim=-2)


    def with_before(x):
        before = x.roll(1, dims=-3)
        return torch.cat([before, x], dim=-2)


    def cut(x):
        return rearrange(x, "... (c w) d -> ... c w d", w=chunk)


    keys = nn.functional.normalize(qk, dim=-1)
    q, k, own = (cut(sort(x, order)) for x in (qk, keys, v))
    place = cut(order.unsqueeze(-1)) + 1
    bucket = cut(torch.take_along_dim(buckets, order, dim=-1).unsqueeze(-1))
    places = with_before(place).mT
    sees = (bucket == with_before(bucket).mT) & (places > 0) & (places != place)
    if causal:
        sees = sees & (places < place)
    found = scaled_dot_product_attention(q, with_before(k), with_before(own), sees)
    found = torch.where(sees.any(-1, keepdim=True), found, own)
    return sort(rearrange(found, "... c w d -> ... (c w) d"), back)


# %% efficient/lsh | wrong | sees all words of the chunks, of whatever bucket
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    back = order.argsort(dim=-1)


    def sort(x, order):
        return torch.take_along_dim(x, order.unsqueeze(-1), dim=-2)


    def with_before(x):
        before = torch.cat([torch.zeros_like(x[..., :1, :, :]), x[..., :-1, :, :]], dim=-3)
        return torch.cat([before, x], dim=-2)


    def cut(x):
        return rearrange(x, "... (c w) d -> ... c w d", w=chunk)


    keys = nn.functional.normalize(qk, dim=-1)
    q, k, own = (cut(sort(x, order)) for x in (qk, keys, v))
    place = cut(order.unsqueeze(-1)) + 1
    bucket = cut(torch.take_along_dim(buckets, order, dim=-1).unsqueeze(-1))
    places = with_before(place).mT
    sees = (places > 0) & (places != place)
    if causal:
        sees = sees & (places < place)
    found = scaled_dot_product_attention(q, with_before(k), with_before(own), sees)
    found = torch.where(sees.any(-1, keepdim=True), found, own)
    return sort(rearrange(found, "... c w d -> ... (c w) d"), back)


# %% efficient/lsh | wrong | a word that sees nothing else gets zeros
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    n = qk.shape[-2]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    back = order.argsort(dim=-1)


    def sort(x, order):
        return torch.take_along_dim(x, order.unsqueeze(-1), dim=-2)


    def with_before(x):
        before = torch.cat([torch.zeros_like(x[..., :1, :, :]), x[..., :-1, :, :]], dim=-3)
        return torch.cat([before, x], dim=-2)


    def cut(x):
        return rearrange(x, "... (c w) d -> ... c w d", w=chunk)


    keys = nn.functional.normalize(qk, dim=-1)
    q, k, own = (cut(sort(x, order)) for x in (qk, keys, v))
    place = cut(order.unsqueeze(-1)) + 1
    bucket = cut(torch.take_along_dim(buckets, order, dim=-1).unsqueeze(-1))
    places = with_before(place).mT
    sees = (bucket == with_before(bucket).mT) & (places > 0) & (places != place)
    if causal:
        sees = sees & (places < place)
    found = scaled_dot_product_attention(q, with_before(k), with_before(own), sees)
    return sort(rearrange(found, "... c w d -> ... (c w) d"), back)


# %% efficient/lsh | wrong | a chunk that does not divide n is made smaller instead of refused
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    """Attend to words of the same bucket, within one chunk and the chunk before it.

    In the order of their buckets, words of one bucket stand together, and chunks of equal length
    cover them; the first chunk has none before it. Keys are the queries brought to length 1, so a
    score is x_i . x_j / (|x_j| sqrt(d_k)); a word looks at itself only if it sees nothing else. One
    bucket and chunk = n is dense attention in which no word looks at itself. With `causal`, no word
    looks at a later one. Time O(n chunk d + n log n). Source: Kitaev et al. 2020, section 2. Raises
    ValueError where `chunk` does not divide n.
    """
    # TODO: sort the words by bucket; within a bucket they keep their order
    # TODO: let the words of each chunk see those of the same bucket, there and in the chunk before
    # TODO: attend in this order to keys of length 1, and put the words back
    # TODO: a word that sees nothing else looks at itself
    n = qk.shape[-2]
    while n % chunk:
        chunk -= 1
    order = buckets.argsort(dim=-1, stable=True)
    back = order.argsort(dim=-1)


    def sort(x, order):
        return torch.take_along_dim(x, order.unsqueeze(-1), dim=-2)


    def with_before(x):
        before = torch.cat([torch.zeros_like(x[..., :1, :, :]), x[..., :-1, :, :]], dim=-3)
        return torch.cat([before, x], dim=-2)


    def cut(x):
        return rearrange(x, "... (c w) d -> ... c w d", w=chunk)


    keys = nn.functional.normalize(qk, dim=-1)
    q, k, own = (cut(sort(x, order)) for x in (qk, keys, v))
    place = cut(order.unsqueeze(-1)) + 1
    bucket = cut(torch.take_along_dim(buckets, order, dim=-1).unsqueeze(-1))
    places = with_before(place).mT
    sees = (bucket == with_before(bucket).mT) & (places > 0) & (places != place)
    if causal:
        sees = sees & (places < place)
    found = scaled_dot_product_attention(q, with_before(k), with_before(own), sees)
    found = torch.where(sees.any(-1, keepdim=True), found, own)
    return sort(rearrange(found, "... c w d -> ... (c w) d"), back)


# %% efficient/memory_compressed | right | a product for each place of the state, on strided slices
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    """Sum up every few words in one state: y_i = sum_w x_(i stride + w) W_w.

    W_0 meets the leftmost word of a state, words after the last one are zeros, and there are
    ceil(n / stride) states. Time O(n d_in d_out width / stride), memory O(n d width / stride).
    Source: Liu et al. 2018, section 4.2.3, where width and stride are 3. Raises ValueError for a
    stride below 1.
    """
    if stride < 1:
        raise ValueError("a stride moves on by one word at least")
    n, (width, _, d_out) = x.shape[-2], weight.shape
    states = (n + stride - 1) // stride
    total = x.new_zeros(*x.shape[:-2], states, d_out)
    for w in range(width):
        part = x[..., w::stride, :][..., :states, :] @ weight[w]
        missing = states - part.shape[-2]
        total = total + nn.functional.pad(part, (0, 0, 0, missing))
    return total


# %% efficient/memory_compressed | wrong | the words left over at the end are dropped
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    """Sum up every few words in one state: y_i = sum_w x_(i stride + w) W_w.

    W_0 meets the leftmost word of a state, words after the last one are zeros, and there are
    ceil(n / stride) states. Time O(n d_in d_out width / stride), memory O(n d width / stride).
    Source: Liu et al. 2018, section 4.2.3, where width and stride are 3. Raises ValueError for a
    stride below 1.
    """
    if stride < 1:
        raise ValueError("stride")
    width = len(weight)
    windows = x.unfold(-2, width, stride)
    return einsum(windows, weight, "... s d w, w d e -> ... s e")


# %% efficient/memory_compressed | wrong | the zeros stand at the beginning
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    """Sum up every few words in one state: y_i = sum_w x_(i stride + w) W_w.

    W_0 meets the leftmost word of a state, words after the last one are zeros, and there are
    ceil(n / stride) states. Time O(n d_in d_out width / stride), memory O(n d width / stride).
    Source: Liu et al. 2018, section 4.2.3, where width and stride are 3. Raises ValueError for a
    stride below 1.
    """
    # TODO: count the states, the last of which may reach past the last word
    # TODO: put words of zeros behind the text, where the last states need them
    # TODO: lay beside each other the words of one state, and multiply each by its matrix
    if stride < 1:
        raise ValueError("stride")
    n, width = x.shape[-2], len(weight)
    states = -(-n // stride)
    missing = max(0, (states - 1) * stride + width - n)
    padded = F.pad(x, (0, 0, missing, 0))
    windows = padded.unfold(-2, width, stride)[..., :states, :, :]
    return einsum(windows, weight, "... s d w, w d e -> ... s e")


# %% efficient/memory_compressed | wrong | the stride is taken to be the width
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    """Sum up every few words in one state: y_i = sum_w x_(i stride + w) W_w.

    W_0 meets the leftmost word of a state, words after the last one are zeros, and there are
    ceil(n / stride) states. Time O(n d_in d_out width / stride), memory O(n d width / stride).
    Source: Liu et al. 2018, section 4.2.3, where width and stride are 3. Raises ValueError for a
    stride below 1.
    """
    if stride < 1:
        raise ValueError("stride")
    n, width = x.shape[-2], len(weight)
    states = -(-n // width)
    padded = F.pad(x, (0, 0, 0, states * width - n))
    windows = padded.unfold(-2, width, width)
    return einsum(windows, weight, "... s d w, w d e -> ... s e")


# %% efficient/memory_compressed | wrong | W_0 meets the rightmost word
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    """Sum up every few words in one state: y_i = sum_w x_(i stride + w) W_w.

    W_0 meets the leftmost word of a state, words after the last one are zeros, and there are
    ceil(n / stride) states. Time O(n d_in d_out width / stride), memory O(n d width / stride).
    Source: Liu et al. 2018, section 4.2.3, where width and stride are 3. Raises ValueError for a
    stride below 1.
    """
    if stride < 1:
        raise ValueError("stride")
    n, width = x.shape[-2], len(weight)
    states = -(-n // stride)
    padded = F.pad(x, (0, 0, 0, width + stride))
    windows = padded.unfold(-2, width, stride)[..., :states, :, :]
    return einsum(windows, weight.flip(0), "... s d w, w d e -> ... s e")


# %% efficient/memory_compressed | wrong | centred windows, padded on both sides as in lesson 01
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    """Sum up every few words in one state: y_i = sum_w x_(i stride + w) W_w.

    W_0 meets the leftmost word of a state, words after the last one are zeros, and there are
    ceil(n / stride) states. Time O(n d_in d_out width / stride), memory O(n d width / stride).
    Source: Liu et al. 2018, section 4.2.3, where width and stride are 3. Raises ValueError for a
    stride below 1.
    """
    if stride < 1:
        raise ValueError("stride")
    n, width = x.shape[-2], len(weight)
    states = -(-n // stride)
    padded = F.pad(x, (0, 0, width // 2, width + stride))
    windows = padded.unfold(-2, width, stride)[..., :states, :, :]
    return einsum(windows, weight, "... s d w, w d e -> ... s e")


# %% efficient/memory_compressed | wrong | one state too many where stride divides n
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    """Sum up every few words in one state: y_i = sum_w x_(i stride + w) W_w.

    W_0 meets the leftmost word of a state, words after the last one are zeros, and there are
    ceil(n / stride) states. Time O(n d_in d_out width / stride), memory O(n d width / stride).
    Source: Liu et al. 2018, section 4.2.3, where width and stride are 3. Raises ValueError for a
    stride below 1.
    """
    if stride < 1:
        raise ValueError("stride")
    n, width = x.shape[-2], len(weight)
    states = n // stride + 1
    padded = F.pad(x, (0, 0, 0, width + stride))
    windows = padded.unfold(-2, width, stride)[..., :states, :, :]
    return einsum(windows, weight, "... s d w, w d e -> ... s e")


# %% efficient/memory_compressed | wrong | averages over the width
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    """Sum up every few words in one state: y_i = sum_w x_(i stride + w) W_w.

    W_0 meets the leftmost word of a state, words after the last one are zeros, and there are
    ceil(n / stride) states. Time O(n d_in d_out width / stride), memory O(n d width / stride).
    Source: Liu et al. 2018, section 4.2.3, where width and stride are 3. Raises ValueError for a
    stride below 1.
    """
    # TODO: count the states, the last of which may reach past the last word
    # TODO: put words of zeros behind the text, where the last states need them
    # TODO: lay beside each other the words of one state, and multiply each by its matrix
    if stride < 1:
        raise ValueError("stride")
    n, width = x.shape[-2], len(weight)
    states = -(-n // stride)
    padded = F.pad(x, (0, 0, 0, width + stride))
    windows = padded.unfold(-2, width, stride)[..., :states, :, :]
    return einsum(windows, weight, "... s d w, w d e -> ... s e") / width


# %% efficient/memory_compressed | wrong | a stride of 0 raises ZeroDivisionError
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    """Sum up every few words in one state: y_i = sum_w x_(i stride + w) W_w.

    W_0 meets the leftmost word of a state, words after the last one are zeros, and there are
    ceil(n / stride) states. Time O(n d_in d_out width / stride), memory O(n d width / stride).
    Source: Liu et al. 2018, section 4.2.3, where width and stride are 3. Raises ValueError for a
    stride below 1.
    """
    n, width = x.shape[-2], len(weight)
    states = -(-n // stride)
    padded = F.pad(x, (0, 0, 0, width + stride))
    windows = padded.unfold(-2, width, stride)[..., :states, :, :]
    return einsum(windows, weight, "... s d w, w d e -> ... s e")


# %% efficient/memory_compressed | wrong | convolves every word and throws most results away: the same numbers, in time n, not n / stride
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    """Sum up every few words in one state: y_i = sum_w x_(i stride + w) W_w.

    W_0 meets the leftmost word of a state, words after the last one are zeros, and there are
    ceil(n / stride) states. Time O(n d_in d_out width / stride), memory O(n d width / stride).
    Source: Liu et al. 2018, section 4.2.3, where width and stride are 3. Raises ValueError for a
    stride below 1.
    """
    if stride < 1:
        raise ValueError("stride")
    n, width = x.shape[-2], len(weight)
    padded = F.pad(x, (0, 0, 0, width))
    all_states = sum(padded[..., w : w + n, :] @ weight[w] for w in range(width))
    return all_states[..., ::stride, :]


# %% efficient/reversible | right | undoes by indexing halves of the last axis
class ReversibleBlock(nn.Module):
    """Add f to one half and g to the other: y1 = x1 + f(x2), y2 = x2 + g(y1).

    x = [x1, x2] are the halves of the last axis. f and g return the same each time they are called
    (no dropout). Keeps nothing that `inverse` cannot compute. Source: Gomez et al. 2017, eq. 6 and
    7. Raises ValueError for an odd last axis.
    """

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Change one half by the other, then the other by the one."""
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Find what went in: x2 = y2 - g(y1), x1 = y1 - f(x2)."""
        # TODO: cut each word into halves
        # TODO: take off what was added, the last first
        y1, y2 = halves(y)
        undone = {}
        undone["right"] = y2 + (-1) * self.g(y1)
        undone["left"] = y1 + (-1) * self.f(undone["right"])
        return torch.concatenate([undone[side] for side in ("left", "right")], dim=-1)


# %% efficient/reversible | wrong | undoes in the order of the forward pass
class ReversibleBlock(nn.Module):
    """Add f to one half and g to the other: y1 = x1 + f(x2), y2 = x2 + g(y1).

    x = [x1, x2] are the halves of the last axis. f and g return the same each time they are called
    (no dropout). Keeps nothing that `inverse` cannot compute. Source: Gomez et al. 2017, eq. 6 and
    7. Raises ValueError for an odd last axis.
    """

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Change one half by the other, then the other by the one."""
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Find what went in: x2 = y2 - g(y1), x1 = y1 - f(x2)."""
        y1, y2 = halves(y)
        x1 = y1 - self.f(y2)
        x2 = y2 - self.g(x1)
        return torch.cat([x1, x2], dim=-1)


# %% efficient/reversible | wrong | f and g exchanged
class ReversibleBlock(nn.Module):
    """Add f to one half and g to the other: y1 = x1 + f(x2), y2 = x2 + g(y1).

    x = [x1, x2] are the halves of the last axis. f and g return the same each time they are called
    (no dropout). Keeps nothing that `inverse` cannot compute. Source: Gomez et al. 2017, eq. 6 and
    7. Raises ValueError for an odd last axis.
    """

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Change one half by the other, then the other by the one."""
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Find what went in: x2 = y2 - g(y1), x1 = y1 - f(x2)."""
        y1, y2 = halves(y)
        x2 = y2 - self.f(y1)
        x1 = y1 - self.g(x2)
        return torch.cat([x1, x2], dim=-1)


# %% efficient/reversible | wrong | adds once more
class ReversibleBlock(nn.Module):
    """Add f to one half and g to the other: y1 = x1 + f(x2), y2 = x2 + g(y1).

    x = [x1, x2] are the halves of the last axis. f and g return the same each time they are called
    (no dropout). Keeps nothing that `inverse` cannot compute. Source: Gomez et al. 2017, eq. 6 and
    7. Raises ValueError for an odd last axis.
    """

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Change one half by the other, then the other by the one."""
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Find what went in: x2 = y2 - g(y1), x1 = y1 - f(x2)."""
        y1, y2 = halves(y)
        x2 = y2 + self.g(y1)
        x1 = y1 + self.f(x2)
        return torch.cat([x1, x2], dim=-1)


# %% efficient/reversible | wrong | the halves are put together the wrong way round
class ReversibleBlock(nn.Module):
    """Add f to one half and g to the other: y1 = x1 + f(x2), y2 = x2 + g(y1).

    x = [x1, x2] are the halves of the last axis. f and g return the same each time they are called
    (no dropout). Keeps nothing that `inverse` cannot compute. Source: Gomez et al. 2017, eq. 6 and
    7. Raises ValueError for an odd last axis.
    """

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Change one half by the other, then the other by the one."""
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Find what went in: x2 = y2 - g(y1), x1 = y1 - f(x2)."""
        y1, y2 = halves(y)
        x2 = y2 - self.g(y1)
        x1 = y1 - self.f(x2)
        return torch.cat([x2, x1], dim=-1)


# %% efficient/reversible | wrong | f reads y2, not the restored x2
class ReversibleBlock(nn.Module):
    """Add f to one half and g to the other: y1 = x1 + f(x2), y2 = x2 + g(y1).

    x = [x1, x2] are the halves of the last axis. f and g return the same each time they are called
    (no dropout). Keeps nothing that `inverse` cannot compute. Source: Gomez et al. 2017, eq. 6 and
    7. Raises ValueError for an odd last axis.
    """

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Change one half by the other, then the other by the one."""
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Find what went in: x2 = y2 - g(y1), x1 = y1 - f(x2)."""
        y1, y2 = halves(y)
        x2 = y2 - self.g(y1)
        x1 = y1 - self.f(y2)
        return torch.cat([x1, x2], dim=-1)


# %% efficient/reversible | wrong | g reads the restored x1
class ReversibleBlock(nn.Module):
    """Add f to one half and g to the other: y1 = x1 + f(x2), y2 = x2 + g(y1).

    x = [x1, x2] are the halves of the last axis. f and g return the same each time they are called
    (no dropout). Keeps nothing that `inverse` cannot compute. Source: Gomez et al. 2017, eq. 6 and
    7. Raises ValueError for an odd last axis.
    """

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Change one half by the other, then the other by the one."""
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Find what went in: x2 = y2 - g(y1), x1 = y1 - f(x2)."""
        y1, y2 = halves(y)
        x1 = y1 - self.f(y2 - self.g(y1))
        x2 = y2 - self.g(x1)
        return torch.cat([x1, x2], dim=-1)


# %% efficient/reversible | wrong | an odd last axis is cut unevenly and not refused
class ReversibleBlock(nn.Module):
    """Add f to one half and g to the other: y1 = x1 + f(x2), y2 = x2 + g(y1).

    x = [x1, x2] are the halves of the last axis. f and g return the same each time they are called
    (no dropout). Keeps nothing that `inverse` cannot compute. Source: Gomez et al. 2017, eq. 6 and
    7. Raises ValueError for an odd last axis.
    """

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Change one half by the other, then the other by the one."""
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Find what went in: x2 = y2 - g(y1), x1 = y1 - f(x2)."""
        half = y.shape[-1] // 2
        y1, y2 = y[..., :half], y[..., half : 2 * half]
        x2 = y2 - self.g(y1)
        x1 = y1 - self.f(x2)
        return torch.cat([x1, x2], dim=-1)


# %% efficient/reversible | wrong | takes off in place, so the caller's y changes
class ReversibleBlock(nn.Module):
    """Add f to one half and g to the other: y1 = x1 + f(x2), y2 = x2 + g(y1).

    x = [x1, x2] are the halves of the last axis. f and g return the same each time they are called
    (no dropout). Keeps nothing that `inverse` cannot compute. Source: Gomez et al. 2017, eq. 6 and
    7. Raises ValueError for an odd last axis.
    """

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Change one half by the other, then the other by the one."""
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Find what went in: x2 = y2 - g(y1), x1 = y1 - f(x2)."""
        y1, y2 = halves(y)
        with torch.no_grad():
            y2 -= self.g(y1)
            y1 -= self.f(y2)
        return torch.cat([y1, y2], dim=-1)


# %% efficient/reversible | wrong | forward keeps its input and inverse hands it back
class ReversibleBlock(nn.Module):
    def __init__(self, f, g):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x):
        self.kept = x
        x1, x2 = halves(x)
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y):
        return self.kept


# %% efficient/reversible | wrong | interleaved halves
class ReversibleBlock(nn.Module):
    """Add f to one half and g to the other: y1 = x1 + f(x2), y2 = x2 + g(y1).

    x = [x1, x2] are the halves of the last axis. f and g return the same each time they are called
    (no dropout). Keeps nothing that `inverse` cannot compute. Source: Gomez et al. 2017, eq. 6 and
    7. Raises ValueError for an odd last axis.
    """

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Change one half by the other, then the other by the one."""
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        """Find what went in: x2 = y2 - g(y1), x1 = y1 - f(x2)."""
        y1, y2 = y[..., 0::2], y[..., 1::2]
        if y1.shape != y2.shape:
            raise ValueError("odd")
        x2 = y2 - self.g(y1)
        x1 = y1 - self.f(x2)
        return torch.stack([x1, x2], dim=-1).flatten(-2)


# %% efficient/tiled | right | a running logsumexp instead of a peak and a sum
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    # TODO: let each block of queries meet each block of keys
    # TODO: go through the tiles: keep each row's peak, its sum of exponentials and its sum of values,
    #   and shrink both sums whenever the peak rises
    found = []
    for rows in q.split(block, dim=-2):
        rows = rows / q.shape[-1] ** 0.5
        logs = out = None
        for keys, values in zip(k.split(block, dim=-2), v.split(block, dim=-2)):
            scores = rows @ keys.mT
            here = torch.logsumexp(scores, dim=-1, keepdim=True)
            average = torch.exp(scores - here) @ values
            if logs is None:
                logs, out = here, average
            else:
                both = torch.logaddexp(logs, here)
                out = torch.exp(logs - both) * out + torch.exp(here - both) * average
                logs = both
        found.append(out)
    return torch.cat(found, dim=-2)


# %% efficient/tiled | wrong | a softmax in each tile, the tiles' results added
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    out = []
    for rows in q.split(block, -2):
        tiles = zip(k.split(block, -2), v.split(block, -2))
        out.append(sum(scaled_dot_product_attention(rows, keys, values) for keys, values in tiles))
    return torch.cat(out, dim=-2)


# %% efficient/tiled | wrong | the mean of the tiles' results
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    # TODO: let each block of queries meet each block of keys
    # TODO: go through the tiles: keep each row's peak, its sum of exponentials and its sum of values,
    #   and shrink both sums whenever the peak rises
    out = []
    for rows in q.split(block, -2):
        tiles = zip(k.split(block, -2), v.split(block, -2))
        found = [scaled_dot_product_attention(rows, keys, values) for keys, values in tiles]
        out.append(torch.stack(found).mean(0))
    return torch.cat(out, dim=-2)


# %% efficient/tiled | wrong | each block of queries meets its own block of keys only
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    # TODO: let each block of queries meet each block of keys
    # TODO: go through the tiles: keep each row's peak, its sum of exponentials and its sum of values,
    #   and shrink both sums whenever the peak rises
    parts = zip(q.split(block, -2), k.split(block, -2), v.split(block, -2))
    return torch.cat([scaled_dot_product_attention(*part) for part in parts], dim=-2)


# %% efficient/tiled | wrong | does not shrink the old sums when the peak rises
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    # TODO: let each block of queries meet each block of keys
    # TODO: go through the tiles: keep each row's peak, its sum of exponentials and its sum of values,
    #   and shrink both sums whenever the peak rises
    out = []
    for rows in q.split(block, -2):
        peak = q.new_full((*rows.shape[:-1], 1), -torch.inf)
        total = q.new_zeros((*rows.shape[:-1], 1))
        sums = q.new_zeros((*rows.shape[:-1], v.shape[-1]))
        for keys, values in zip(k.split(block, -2), v.split(block, -2)):
            scores = rows @ keys.mT / q.shape[-1] ** 0.5
            peak = torch.maximum(peak, scores.amax(-1, keepdim=True))
            e = (scores - peak).exp()
            total = total + e.sum(-1, keepdim=True)
            sums = sums + e @ values
        out.append(sums / total)
    return torch.cat(out, dim=-2)


# %% efficient/tiled | wrong | shrinks the sum of exponentials, but not that of the values
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    out = []
    for rows in q.split(block, -2):
        peak = q.new_full((*rows.shape[:-1], 1), -torch.inf)
        total = q.new_zeros((*rows.shape[:-1], 1))
        sums = q.new_zeros((*rows.shape[:-1], v.shape[-1]))
        for keys, values in zip(k.split(block, -2), v.split(block, -2)):
            scores = rows @ keys.mT / q.shape[-1] ** 0.5
            higher = torch.maximum(peak, scores.amax(-1, keepdim=True))
            e = (scores - higher).exp()
            total = total * (peak - higher).exp() + e.sum(-1, keepdim=True)
            sums = sums + e @ values
            peak = higher
        out.append(sums / total)
    return torch.cat(out, dim=-2)


# %% efficient/tiled | wrong | no peak at all: large scores overflow
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    # TODO: let each block of queries meet each block of keys
    # TODO: go through the tiles: keep each row's peak, its sum of exponentials and its sum of values,
    #   and shrink both sums whenever the peak rises
    out = []
    for rows in q.split(block, -2):
        total = sums = 0
        for keys, values in zip(k.split(block, -2), v.split(block, -2)):
            e = (rows @ keys.mT / q.shape[-1] ** 0.5).exp()
            total = total + e.sum(-1, keepdim=True)
            sums = sums + e @ values
        out.append(sums / total)
    return torch.cat(out, dim=-2)


# %% efficient/tiled | wrong | dense attention, ignoring `block`: the same numbers, with n^2 scores in memory
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    return scaled_dot_product_attention(q, k, v)


# %% efficient/tiled | wrong | tiles the queries only: the same numbers, with tiles of block x n
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    # TODO: let each block of queries meet each block of keys
    # TODO: go through the tiles: keep each row's peak, its sum of exponentials and its sum of values,
    #   and shrink both sums whenever the peak rises
    return torch.cat([scaled_dot_product_attention(rows, k, v) for rows in q.split(block, -2)], dim=-2)


# %% efficient/tiled | wrong | a block that does not divide the keys loses the rest
from course_lib.attention import softmax


def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    out, whole = [], k.shape[-2] // block
    for rows in q.split(block, -2):
        logs, sums = [], []
        for j in range(whole):
            keys, values = (x[..., j * block : (j + 1) * block, :] for x in (k, v))
            scores = rows @ keys.mT / q.shape[-1] ** 0.5
            logs.append(scores.logsumexp(-1, keepdim=True))
            sums.append(softmax(scores) @ values)
        shares = torch.softmax(torch.stack(logs), dim=0)
        out.append((shares * torch.stack(sums)).sum(0))
    return torch.cat(out, dim=-2)


# %% efficient/tiled | wrong | keys cut by the number of queries
from course_lib.attention import softmax


def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    out = []
    for start in range(0, q.shape[-2], block):
        rows = q[..., start : start + block, :] / q.shape[-1] ** 0.5
        logs = sums = None
        for at in range(0, q.shape[-2], block):
            keys, values = k[..., at : at + block, :], v[..., at : at + block, :]
            scores = rows @ keys.mT
            here, mean = scores.logsumexp(-1, keepdim=True), softmax(scores) @ values
            if logs is None:
                logs, sums = here, mean
            else:
                both = torch.logaddexp(logs, here)
                sums = (logs - both).exp() * sums + (here - both).exp() * mean
                logs = both
        out.append(sums)
    return torch.cat(out, dim=-2)


# %% efficient/window_mask | right | a band as the overlap of two triangles
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each word look width // 2 words to either side, and at itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    # TODO: measure how far apart each two words stand
    # TODO: let those see each other that are near enough
    reach = width // 2
    everywhere = torch.ones(n, n, dtype=torch.bool)
    return torch.logical_and(everywhere.tril(reach), everywhere.triu(-reach))


# %% efficient/window_mask | wrong | width words to either side
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each word look width // 2 words to either side, and at itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    # TODO: measure how far apart each two words stand
    # TODO: let those see each other that are near enough
    place = torch.arange(n)
    return (place[:, None] - place).abs() <= width


# %% efficient/window_mask | wrong | strictly less: one word short on each side
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each word look width // 2 words to either side, and at itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    # TODO: measure how far apart each two words stand
    # TODO: let those see each other that are near enough
    place = torch.arange(n)
    return (place[:, None] - place).abs() < width // 2


# %% efficient/window_mask | wrong | looks back only
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each word look width // 2 words to either side, and at itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    place = torch.arange(n)
    back = place[:, None] - place
    return (back >= 0) & (back <= width // 2)


# %% efficient/window_mask | wrong | does not look at itself
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each word look width // 2 words to either side, and at itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    place = torch.arange(n)
    apart = (place[:, None] - place).abs()
    return (apart <= width // 2) & (apart > 0)


# %% efficient/window_mask | wrong | no abs: all words to the right are seen
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each word look width // 2 words to either side, and at itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    place = torch.arange(n)
    return place[:, None] - place <= width // 2


# %% efficient/window_mask | wrong | the ends are joined to a ring
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each word look width // 2 words to either side, and at itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    place = torch.arange(n)
    apart = (place[:, None] - place).abs()
    return torch.minimum(apart, n - apart) <= width // 2


# %% efficient/window_mask | wrong | True outside the window
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each word look width // 2 words to either side, and at itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    place = torch.arange(n)
    return (place[:, None] - place).abs() > width // 2


# %% efficient/window_mask | wrong | floats of one and zero
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each word look width // 2 words to either side, and at itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    mask = torch.zeros(n, n)
    for i in range(n):
        mask[i, max(0, i - width // 2) : i + width // 2 + 1] = 1
    return mask


# %% efficient/window_mask | wrong | a negative start of the slice wraps round near the first words
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each word look width // 2 words to either side, and at itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        mask[i, i - width // 2 : i + width // 2 + 1] = True
    return mask


# %% efficient/window_mask | wrong | an even width sees one word less to the right
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let each word look width // 2 words to either side, and at itself.

    Time and memory O(n^2): to look at, and to test with.
    """
    # TODO: measure how far apart each two words stand
    # TODO: let those see each other that are near enough
    place = torch.arange(n)
    ahead = place - place[:, None]
    return (ahead >= -(width // 2)) & (ahead < width - width // 2)


# %% efficient/window | right | halves the text again and again, until a piece is as short as the reach
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend where abs(i - j) <= width // 2: dense attention under `window_mask`, exactly.

    Time O(n width d), memory O(n d). Any n. Source: Beltagy et al. 2020, section 3.1.
    """
    n, reach = q.shape[-2], width // 2


    def piece(start, stop):
        if stop - start > max(reach, 1):
            middle = (start + stop) // 2
            return torch.cat([piece(start, middle), piece(middle, stop)], dim=-2)
        low, high = max(0, start - reach), min(n, stop + reach)
        rows, columns = torch.arange(start, stop), torch.arange(low, high)
        near = (rows.unsqueeze(1) - columns).abs().le(reach).to(q.device)
        keys, values = k[..., low:high, :], v[..., low:high, :]
        return scaled_dot_product_attention(q[..., start:stop, :], keys, values, near)


    return piece(0, n)


# %% efficient/window | wrong | dense attention under the mask: the same numbers, with all n^2 scores
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend where abs(i - j) <= width // 2: dense attention under `window_mask`, exactly.

    Time O(n width d), memory O(n d). Any n. Source: Beltagy et al. 2020, section 3.1.
    """
    return scaled_dot_product_attention(q, k, v, window_mask(q.shape[-2], width))


# %% efficient/window | wrong | blocks of width words that see nothing outside
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend where abs(i - j) <= width // 2: dense attention under `window_mask`, exactly.

    Time O(n width d), memory O(n d). Any n. Source: Beltagy et al. 2020, section 3.1.
    """
    # TODO: cut the queries into blocks
    # TODO: find the stretch of keys that any query of the block may see
    # TODO: hide the pairs in it that are too far apart
    # TODO: attend in each block to its own stretch
    parts = zip(*(x.split(max(1, width), dim=-2) for x in (q, k, v)))
    return torch.cat([scaled_dot_product_attention(*part) for part in parts], dim=-2)


# %% efficient/window | wrong | all pairs of block and stretch are seen: the mask within is forgotten
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend where abs(i - j) <= width // 2: dense attention under `window_mask`, exactly.

    Time O(n width d), memory O(n d). Any n. Source: Beltagy et al. 2020, section 3.1.
    """
    # TODO: cut the queries into blocks
    # TODO: find the stretch of keys that any query of the block may see
    # TODO: hide the pairs in it that are too far apart
    # TODO: attend in each block to its own stretch
    n, reach = q.shape[-2], width // 2
    size, out = max(1, reach), []
    for start in range(0, n, size):
        low, high = max(0, start - reach), min(n, start + size + reach)
        out.append(scaled_dot_product_attention(q[..., start : start + size, :], k[..., low:high, :], v[..., low:high, :]))
    return torch.cat(out, dim=-2)


# %% efficient/window | wrong | the padding's zeros take part in the softmax
from course_lib.attention import softmax


def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend where abs(i - j) <= width // 2: dense attention under `window_mask`, exactly.

    Time O(n width d), memory O(n d). Any n. Source: Beltagy et al. 2020, section 3.1.
    """
    # TODO: cut the queries into blocks
    # TODO: find the stretch of keys that any query of the block may see
    # TODO: hide the pairs in it that are too far apart
    # TODO: attend in each block to its own stretch
    n, reach = q.shape[-2], width // 2
    keys, values = (F.pad(x, (0, 0, reach, reach)).unfold(-2, 2 * reach + 1, 1) for x in (k, v))
    scores = einsum(q, keys, "... n d, ... n d w -> ... n w") / q.shape[-1] ** 0.5
    return einsum(softmax(scores), values, "... n w, ... n d w -> ... n d")


# %% efficient/window | wrong | looks back only
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend where abs(i - j) <= width // 2: dense attention under `window_mask`, exactly.

    Time O(n width d), memory O(n d). Any n. Source: Beltagy et al. 2020, section 3.1.
    """
    # TODO: cut the queries into blocks
    # TODO: find the stretch of keys that any query of the block may see
    # TODO: hide the pairs in it that are too far apart
    # TODO: attend in each block to its own stretch
    n, reach = q.shape[-2], width // 2
    out = []
    for i in range(n):
        low = max(0, i - reach)
        seen = slice(low, i + 1)
        out.append(scaled_dot_product_attention(q[..., i : i + 1, :], k[..., seen, :], v[..., seen, :]))
    return torch.cat(out, dim=-2)


# %% efficient/window | wrong | width words to either side
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend where abs(i - j) <= width // 2: dense attention under `window_mask`, exactly.

    Time O(n width d), memory O(n d). Any n. Source: Beltagy et al. 2020, section 3.1.
    """
    # TODO: cut the queries into blocks
    # TODO: find the stretch of keys that any query of the block may see
    # TODO: hide the pairs in it that are too far apart
    # TODO: attend in each block to its own stretch
    n, out = q.shape[-2], []
    for i in range(n):
        seen = slice(max(0, i - width), i + width + 1)
        out.append(scaled_dot_product_attention(q[..., i : i + 1, :], k[..., seen, :], v[..., seen, :]))
    return torch.cat(out, dim=-2)


# %% efficient/window | wrong | the last word of the stretch is cut off
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend where abs(i - j) <= width // 2: dense attention under `window_mask`, exactly.

    Time O(n width d), memory O(n d). Any n. Source: Beltagy et al. 2020, section 3.1.
    """
    n, reach, out = q.shape[-2], width // 2, []
    for i in range(n):
        seen = slice(max(0, i - reach), max(i + reach, i + 1))
        out.append(scaled_dot_product_attention(q[..., i : i + 1, :], k[..., seen, :], v[..., seen, :]))
    return torch.cat(out, dim=-2)


# %% efficient/window | wrong | an n that the width does not divide fails
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend where abs(i - j) <= width // 2: dense attention under `window_mask`, exactly.

    Time O(n width d), memory O(n d). Any n. Source: Beltagy et al. 2020, section 3.1.
    """
    # TODO: cut the queries into blocks
    # TODO: find the stretch of keys that any query of the block may see
    # TODO: hide the pairs in it that are too far apart
    # TODO: attend in each block to its own stretch
    n, reach = q.shape[-2], width // 2
    size = max(1, width)
    blocks = rearrange(q, "... (b s) d -> ... b s d", s=size)
    out = []
    for b in range(blocks.shape[-3]):
        low, high = max(0, b * size - reach), min(n, (b + 1) * size + reach)
        near = (torch.arange(b * size, (b + 1) * size)[:, None] - torch.arange(low, high)).abs() <= reach
        out.append(scaled_dot_product_attention(blocks[..., b, :, :], k[..., low:high, :], v[..., low:high, :], near))
    return torch.cat(out, dim=-2)


# %% efficient/window | wrong | not divided by the root of d_k
from course_lib.attention import softmax


def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend where abs(i - j) <= width // 2: dense attention under `window_mask`, exactly.

    Time O(n width d), memory O(n d). Any n. Source: Beltagy et al. 2020, section 3.1.
    """
    n, reach, out = q.shape[-2], width // 2, []
    for i in range(n):
        seen = slice(max(0, i - reach), i + reach + 1)
        out.append(softmax(q[..., i : i + 1, :] @ k[..., seen, :].mT) @ v[..., seen, :])
    return torch.cat(out, dim=-2)


# %% efficient/tiled | wrong | the ready-made F.scaled_dot_product_attention is called: the right numbers and memory, nothing is built, `block` unused
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    """Attend by tiles of block x block: softmax(Q K^T / sqrt(d_k)) V, to the last digit or two.

    Time O(n^2 d); memory O(n d + block^2). `block` need not divide the number of queries or keys.
    Source: Dao et al. 2022, algorithm 1.
    """
    return F.scaled_dot_product_attention(q, k, v)


# %% efficient/lsh_buckets | wrong | brings the rotations to length one first
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    """Give each word the bucket of the direction in which it points: argmax [x R, -x R].

    Words that point alike tend to share their bucket. Time O(n d b) and memory O(n b) for b
    buckets. Source: Kitaev et al. 2020, section 2, after Andoni et al. 2015.
    """
    reach = x @ F.normalize(rotations, dim=0)
    return torch.cat([reach, -reach], dim=-1).argmax(-1)


# %% efficient/operations | wrong | float power through math.pow
import math


def operations(kind: str, n: int, d: int) -> int:
    """Count the multiply-adds by which one layer mixes n words of size d.

    `attention` scores n^2 pairs and averages n values for each word: 2 n^2 d. `rnn` multiplies each
    word and each state by a matrix: 2 n d^2. The two are equal at n = d. Counts itself in no time.
    Source: Vaswani et al. 2017, table 1, whose orders are made exact; projections, biases and
    softmax are left out. Raises ValueError for another kind.
    """
    if kind == "attention":
        return 2 * math.pow(n, 2) * d
    if kind == "rnn":
        return 2 * n * math.pow(d, 2)
    raise ValueError(kind)
