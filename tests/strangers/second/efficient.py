# %% efficient/neighbours | wrong | the random blocks are drawn from all, so some are there already
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    if window and window % 2 == 0:
        raise ValueError("an even window has no middle")
    generator = torch.Generator().manual_seed(seed)
    half, rows = window // 2, []
    stars = list(range(min(global_blocks, blocks)))
    for i in range(blocks):
        if i in stars:
            rows.append(list(range(blocks)))
            continue
        row = list(stars)
        if window:
            around = range(max(i - half, 0), min(i + half + 1, blocks))
            row += [j for j in around if j not in row]
        others = list(range(blocks))
        drawn = torch.randperm(len(others), generator=generator)[:random_blocks].tolist()
        rows.append(row + [others[j] for j in drawn])
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])

# %% efficient/neighbours | wrong | the window goes round the ends of the text
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    if window and window % 2 == 0:
        raise ValueError("an even window has no middle")
    generator = torch.Generator().manual_seed(seed)
    half, rows = window // 2, []
    stars = list(range(min(global_blocks, blocks)))
    for i in range(blocks):
        if i in stars:
            rows.append(list(range(blocks)))
            continue
        row = list(stars)
        if window:
            around = [j % blocks for j in range(i - half, i + half + 1)]
            row += [j for j in dict.fromkeys(around) if j not in row]
        others = [j for j in range(blocks) if j not in row]
        drawn = torch.randperm(len(others), generator=generator)[:random_blocks].tolist()
        rows.append(row + [others[j] for j in drawn])
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])

# %% efficient/neighbours | wrong | global blocks are seen by all, but see no more than the others
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    if window and window % 2 == 0:
        raise ValueError("an even window has no middle")
    generator = torch.Generator().manual_seed(seed)
    half, rows = window // 2, []
    stars = list(range(min(global_blocks, blocks)))
    for i in range(blocks):
        row = list(stars)
        if window:
            around = range(max(i - half, 0), min(i + half + 1, blocks))
            row += [j for j in around if j not in row]
        others = [j for j in range(blocks) if j not in row]
        drawn = torch.randperm(len(others), generator=generator)[:random_blocks].tolist()
        rows.append(row + [others[j] for j in drawn])
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])

# %% efficient/neighbours | wrong | an even window is not refused
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    generator = torch.Generator().manual_seed(seed)
    half, rows = window // 2, []
    stars = list(range(min(global_blocks, blocks)))
    for i in range(blocks):
        if i in stars:
            rows.append(list(range(blocks)))
            continue
        row = list(stars)
        if window:
            around = range(max(i - half, 0), min(i + half + 1, blocks))
            row += [j for j in around if j not in row]
        others = [j for j in range(blocks) if j not in row]
        drawn = torch.randperm(len(others), generator=generator)[:random_blocks].tolist()
        rows.append(row + [others[j] for j in drawn])
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])

# %% efficient/neighbours | wrong | the seed is not used: two calls give two answers
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    if window and window % 2 == 0:
        raise ValueError("an even window has no middle")
    half, rows = window // 2, []
    stars = list(range(min(global_blocks, blocks)))
    for i in range(blocks):
        if i in stars:
            rows.append(list(range(blocks)))
            continue
        row = list(stars)
        if window:
            around = range(max(i - half, 0), min(i + half + 1, blocks))
            row += [j for j in around if j not in row]
        others = [j for j in range(blocks) if j not in row]
        drawn = torch.randperm(len(others))[:random_blocks].tolist()
        rows.append(row + [others[j] for j in drawn])
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])

# %% efficient/neighbours | wrong | the window counts blocks on each side
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    if window and window % 2 == 0:
        raise ValueError("an even window has no middle")
    generator = torch.Generator().manual_seed(seed)
    half, rows = window, []
    stars = list(range(min(global_blocks, blocks)))
    for i in range(blocks):
        if i in stars:
            rows.append(list(range(blocks)))
            continue
        row = list(stars)
        if window:
            around = range(max(i - half, 0), min(i + half + 1, blocks))
            row += [j for j in around if j not in row]
        others = [j for j in range(blocks) if j not in row]
        drawn = torch.randperm(len(others), generator=generator)[:random_blocks].tolist()
        rows.append(row + [others[j] for j in drawn])
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])

# %% efficient/neighbours | wrong | a window of 0 still sees the block itself
def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    if window and window % 2 == 0:
        raise ValueError("an even window has no middle")
    generator = torch.Generator().manual_seed(seed)
    half, rows = window // 2, []
    stars = list(range(min(global_blocks, blocks)))
    for i in range(blocks):
        if i in stars:
            rows.append(list(range(blocks)))
            continue
        row = list(stars)
        if True:
            around = range(max(i - half, 0), min(i + half + 1, blocks))
            row += [j for j in around if j not in row]
        others = [j for j in range(blocks) if j not in row]
        drawn = torch.randperm(len(others), generator=generator)[:random_blocks].tolist()
        rows.append(row + [others[j] for j in drawn])
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows])

# %% efficient/neighbours | right | sets and the random module, with masks of numbers not used at all
import random


def neighbours(
    blocks: int, window: int, global_blocks: int, random_blocks: int, seed: int
) -> Int[Tensor, "blocks m"]:
    if window % 2 == 0 and window != 0:
        raise ValueError(f"a window of {window} blocks has no middle; take an odd one, or 0")
    chance = random.Random(seed)
    lists = []
    for i in range(blocks):
        seen = set(range(min(global_blocks, blocks)))
        if i < global_blocks:
            seen = set(range(blocks))
        elif window:
            seen |= {j for j in range(i - window // 2, i + window // 2 + 1) if 0 <= j < blocks}
        rest = sorted(set(range(blocks)) - seen)
        seen |= set(chance.sample(rest, min(random_blocks, len(rest))))
        lists.append(sorted(seen))
    table = torch.full((blocks, max(map(len, lists), default=0)), -1, dtype=torch.long)
    for i, seen in enumerate(lists):
        table[i, : len(seen)] = torch.tensor(seen, dtype=torch.long)
    return table

# %% efficient/bigbird_mask | wrong | -1 marks the last block, as an index from behind
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    blocks = neighbours.shape[0]
    board = torch.zeros(blocks, blocks, dtype=torch.bool, device=neighbours.device)
    board[torch.arange(blocks)[:, None], neighbours] = True
    return board.repeat_interleave(block, 0).repeat_interleave(block, 1)

# %% efficient/bigbird_mask | wrong | the mask is transposed: rows are keys
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    blocks = neighbours.shape[0]
    board = torch.zeros(blocks, blocks + 1, dtype=torch.bool, device=neighbours.device)
    rows = torch.where(neighbours < 0, blocks, neighbours)
    board.scatter_(1, rows, True)
    board = board[:, :blocks]
    return board.mT.repeat_interleave(block, 0).repeat_interleave(block, 1)

# %% efficient/bigbird_mask | wrong | whole boards are laid side by side, instead of making each block larger
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    blocks = neighbours.shape[0]
    board = torch.zeros(blocks, blocks + 1, dtype=torch.bool, device=neighbours.device)
    rows = torch.where(neighbours < 0, blocks, neighbours)
    board.scatter_(1, rows, True)
    board = board[:, :blocks]
    return board.repeat(block, block)

# %% efficient/bigbird_mask | wrong | whoever is seen sees back
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    blocks = neighbours.shape[0]
    board = torch.zeros(blocks, blocks + 1, dtype=torch.bool, device=neighbours.device)
    rows = torch.where(neighbours < 0, blocks, neighbours)
    board.scatter_(1, rows, True)
    board = board[:, :blocks]
    board = board | board.mT
    return board.repeat_interleave(block, 0).repeat_interleave(block, 1)

# %% efficient/bigbird_mask | wrong | -1 is clamped to block 0, which all see then
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    blocks = neighbours.shape[0]
    board = torch.zeros(blocks, blocks + 1, dtype=torch.bool, device=neighbours.device)
    rows = neighbours.clamp(min=0)
    board.scatter_(1, rows, True)
    board = board[:, :blocks]
    return board.repeat_interleave(block, 0).repeat_interleave(block, 1)

# %% efficient/bigbird_mask | wrong | only the queries are made wider, not the keys
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    blocks = neighbours.shape[0]
    board = torch.zeros(blocks, blocks + 1, dtype=torch.bool, device=neighbours.device)
    rows = torch.where(neighbours < 0, blocks, neighbours)
    board.scatter_(1, rows, True)
    board = board[:, :blocks]
    return board.repeat_interleave(block, 0)

# %% efficient/bigbird_mask | wrong | True = hidden
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    blocks = neighbours.shape[0]
    board = torch.zeros(blocks, blocks + 1, dtype=torch.bool, device=neighbours.device)
    rows = torch.where(neighbours < 0, blocks, neighbours)
    board.scatter_(1, rows, True)
    board = board[:, :blocks]
    return ~board.repeat_interleave(block, 0).repeat_interleave(block, 1)

# %% efficient/bigbird_mask | right | a loop over rows that fills rectangles
def bigbird_mask(neighbours: Int[Tensor, "blocks m"], block: int) -> Bool[Tensor, "n n"]:
    blocks = len(neighbours)
    mask = torch.zeros(blocks * block, blocks * block, dtype=torch.bool, device=neighbours.device)
    for i, row in enumerate(neighbours.tolist()):
        for j in row:
            if j != -1:
                mask[i * block : (i + 1) * block, j * block : (j + 1) * block] = True
    return mask

# %% efficient/bigbird | wrong | a block that is listed twice counts twice
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    blocks, n = neighbours.shape[0], q.shape[-2]
    if n != blocks * block:
        raise ValueError("n must be blocks x block")
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("a block does not exist")
    out = []
    for i, row in enumerate(neighbours.tolist()):
        listed = [j for j in row if j >= 0]
        asking = q[..., i * block : (i + 1) * block, :]
        if not listed:
            out.append(v.new_zeros(*v.shape[:-2], block, v.shape[-1]))
            continue
        at = [word for j in listed for word in range(j * block, (j + 1) * block)]
        scores = asking @ k[..., at, :].mT / q.shape[-1] ** 0.5
        out.append(torch.softmax(scores, dim=-1) @ v[..., at, :])
    return torch.cat(out, dim=-2)

# %% efficient/bigbird | wrong | -1 reads the last block
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    blocks, n = neighbours.shape[0], q.shape[-2]
    if n != blocks * block:
        raise ValueError("n must be blocks x block")
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("a block does not exist")
    out = []
    for i, row in enumerate(neighbours.tolist()):
        listed = sorted({j % blocks for j in row})
        asking = q[..., i * block : (i + 1) * block, :]
        if not listed:
            out.append(v.new_zeros(*v.shape[:-2], block, v.shape[-1]))
            continue
        at = [word for j in listed for word in range(j * block, (j + 1) * block)]
        scores = asking @ k[..., at, :].mT / q.shape[-1] ** 0.5
        out.append(torch.softmax(scores, dim=-1) @ v[..., at, :])
    return torch.cat(out, dim=-2)

# %% efficient/bigbird | wrong | the result is made like the queries, with d_k columns where d_v are wanted
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    blocks, n = len(neighbours), q.shape[-2]
    if n != blocks * block:
        raise ValueError("n != blocks * block")
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("no such block")
    out = torch.zeros_like(q)
    for i in range(blocks):
        listed = neighbours[i].unique()
        listed = listed[listed >= 0]
        at = (listed[:, None] * block + torch.arange(block)).flatten()
        here = slice(i * block, (i + 1) * block)
        w = torch.softmax(q[..., here, :] @ k[..., at, :].mT / q.shape[-1] ** 0.5, dim=-1)
        out[..., here, :] = w @ v[..., at, :]
    return out

# %% efficient/bigbird | wrong | a text of another length is cut to what the blocks cover, or read as it is
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    blocks, n = neighbours.shape[0], q.shape[-2]
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("a block does not exist")
    out = []
    for i, row in enumerate(neighbours.tolist()):
        listed = sorted({j for j in row if j >= 0})
        asking = q[..., i * block : (i + 1) * block, :]
        if not listed:
            out.append(v.new_zeros(*v.shape[:-2], block, v.shape[-1]))
            continue
        at = [word for j in listed for word in range(j * block, (j + 1) * block)]
        scores = asking @ k[..., at, :].mT / q.shape[-1] ** 0.5
        out.append(torch.softmax(scores, dim=-1) @ v[..., at, :])
    return torch.cat(out, dim=-2)

# %% efficient/bigbird | wrong | blocks that do not exist are left out silently
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    blocks, n = neighbours.shape[0], q.shape[-2]
    if n != blocks * block:
        raise ValueError("n must be blocks x block")
    out = []
    for i, row in enumerate(neighbours.tolist()):
        listed = sorted({j for j in row if 0 <= j < blocks})
        asking = q[..., i * block : (i + 1) * block, :]
        if not listed:
            out.append(v.new_zeros(*v.shape[:-2], block, v.shape[-1]))
            continue
        at = [word for j in listed for word in range(j * block, (j + 1) * block)]
        scores = asking @ k[..., at, :].mT / q.shape[-1] ** 0.5
        out.append(torch.softmax(scores, dim=-1) @ v[..., at, :])
    return torch.cat(out, dim=-2)

# %% efficient/bigbird | wrong | no scale
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    blocks, n = neighbours.shape[0], q.shape[-2]
    if n != blocks * block:
        raise ValueError("n must be blocks x block")
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("a block does not exist")
    out = []
    for i, row in enumerate(neighbours.tolist()):
        listed = sorted({j for j in row if j >= 0})
        asking = q[..., i * block : (i + 1) * block, :]
        if not listed:
            out.append(v.new_zeros(*v.shape[:-2], block, v.shape[-1]))
            continue
        at = [word for j in listed for word in range(j * block, (j + 1) * block)]
        scores = asking @ k[..., at, :].mT
        out.append(torch.softmax(scores, dim=-1) @ v[..., at, :])
    return torch.cat(out, dim=-2)

# %% efficient/bigbird | wrong | a softmax for each block of keys, and the results are averaged
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    blocks, n = neighbours.shape[0], q.shape[-2]
    if n != blocks * block:
        raise ValueError("n must be blocks x block")
    if ((neighbours < -1) | (neighbours >= blocks)).any():
        raise ValueError("a block does not exist")
    out = []
    for i, row in enumerate(neighbours.tolist()):
        listed = sorted({j for j in row if j >= 0})
        asking = q[..., i * block : (i + 1) * block, :]
        if not listed:
            out.append(v.new_zeros(*v.shape[:-2], block, v.shape[-1]))
            continue
        found = 0
        for j in listed:
            at = slice(j * block, (j + 1) * block)
            scores = asking @ k[..., at, :].mT / q.shape[-1] ** 0.5
            found = found + torch.softmax(scores, dim=-1) @ v[..., at, :]
        out.append(found / len(listed))
    return torch.cat(out, dim=-2)

# %% efficient/bigbird | right | blocks as an axis of their own, and the keys of each row picked by index_select
def bigbird_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    neighbours: Int[Tensor, "blocks m"],
    block: int,
) -> Float[Tensor, "... n d_v"]:
    *batch, n, d = q.shape
    blocks = neighbours.size(0)
    if blocks * block != n:
        raise ValueError(f"{blocks} blocks of {block} words are not {n} words")
    if neighbours.numel() and not -1 <= int(neighbours.min()) <= int(neighbours.max()) < blocks:
        raise ValueError(f"the blocks are numbered from 0 to {blocks - 1}, and -1 is none")
    keys = rearrange(k, "... (b w) d -> ... b w d", b=blocks)
    values = rearrange(v, "... (b w) d -> ... b w d", b=blocks)
    result = torch.zeros(*batch, n, v.shape[-1], dtype=v.dtype, device=v.device).split(block, dim=-2)
    result = list(result)
    for i in range(blocks):
        listed = neighbours[i].unique()
        listed = listed[listed >= 0].to(k.device)
        if len(listed):
            near = keys.index_select(-3, listed).flatten(-3, -2)
            said = values.index_select(-3, listed).flatten(-3, -2)
            asking = q[..., i * block : (i + 1) * block, :] * d**-0.5
            logs = einsum(asking, near, "... i d, ... j d -> ... i j").log_softmax(dim=-1)
            result[i] = einsum(logs.exp(), said, "... i j, ... j d -> ... i d")
    return torch.cat(result, dim=-2)

# %% efficient/operations | wrong | attention is counted once: the weighted sum is forgotten
def operations(kind: str, n: int, d: int) -> int:
    if kind == "attention":
        return n**2 * d
    if kind == "rnn":
        return 2 * n * d**2
    raise ValueError(kind)

# %% efficient/operations | wrong | the rnn multiplies the words only, not the states
def operations(kind: str, n: int, d: int) -> int:
    if kind == "attention":
        return 2 * n**2 * d
    if kind == "rnn":
        return n * d**2
    raise ValueError(kind)

# %% efficient/operations | wrong | the projections are counted as well
def operations(kind: str, n: int, d: int) -> int:
    if kind == "attention":
        return 2 * n**2 * d + 4 * n * d**2
    if kind == "rnn":
        return 2 * n * d**2
    raise ValueError(kind)

# %% efficient/operations | wrong | another kind gives 0
def operations(kind: str, n: int, d: int) -> int:
    return {"attention": 2 * n**2 * d, "rnn": 2 * n * d**2}.get(kind, 0)

# %% efficient/operations | wrong | n and d are exchanged
def operations(kind: str, n: int, d: int) -> int:
    if kind == "attention":
        return 2 * n * d**2
    if kind == "rnn":
        return 2 * n**2 * d
    raise ValueError(kind)

# %% efficient/operations | wrong | pairs of different words only: n (n - 1)
def operations(kind: str, n: int, d: int) -> int:
    if kind == "attention":
        return 2 * n * (n - 1) * d
    if kind == "rnn":
        return 2 * n * d**2
    raise ValueError(kind)

# %% efficient/operations | right | the sizes of the products, multiplied out
def operations(kind: str, n: int, d: int) -> int:
    products = {
        "attention": [(n, d, n), (n, n, d)],
        "rnn": [(1, d, d), (1, d, d)] * n if n <= 8 else [(n, d, d), (n, d, d)],
    }
    if kind not in products:
        raise ValueError(f"kind must be attention or rnn, not {kind!r}")
    return sum(rows * inner * columns for rows, inner, columns in products[kind])

# %% efficient/linear | wrong | a millionth is added below the line, where weak features are smaller than that
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    qf, kf = F.elu(q) + 1, F.elu(k) + 1
    if causal:
        S, z, rows = 0, 0, []
        for i in range(q.shape[-2]):
            S = S + kf[..., i, :].unsqueeze(-1) * v[..., i, :].unsqueeze(-2)
            z = z + kf[..., i, :]
            num = (qf[..., i, :].unsqueeze(-2) @ S).squeeze(-2)
            rows.append(num / ((qf[..., i, :] * z).sum(-1, keepdim=True) + 1e-6))
        return torch.stack(rows, dim=-2)
    den = (qf * kf.sum(-2, keepdim=True)).sum(-1, keepdim=True)
    return qf @ (kf.transpose(-1, -2) @ v) / (den + 1e-6)

# %% efficient/linear | wrong | the features are elu alone, without the 1: they may be negative
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    q, k = F.elu(q), F.elu(k)
    state = torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1], dtype=v.dtype, device=v.device)
    z = torch.zeros(*k.shape[:-2], k.shape[-1], dtype=v.dtype, device=v.device)
    out = []
    if causal:
        for i in range(q.shape[-2]):
            state = state + k[..., i, :, None] * v[..., i, None, :]
            z = z + k[..., i, :]
            above = (q[..., i, :, None] * state).sum(-2)
            below = (q[..., i, :] * z).sum(-1, keepdim=True)
            out.append(torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below)))
        return torch.stack(out, dim=-2)
    state, z = state + k.mT @ v, z + k.sum(-2)
    above, below = q @ state, (q * z.unsqueeze(-2)).sum(-1, keepdim=True)
    return torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below))

# %% efficient/linear | wrong | the queries are divided by the root of d_k first
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    q = q / q.shape[-1] ** 0.5
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1], dtype=v.dtype, device=v.device)
    z = torch.zeros(*k.shape[:-2], k.shape[-1], dtype=v.dtype, device=v.device)
    out = []
    if causal:
        for i in range(q.shape[-2]):
            state = state + k[..., i, :, None] * v[..., i, None, :]
            z = z + k[..., i, :]
            above = (q[..., i, :, None] * state).sum(-2)
            below = (q[..., i, :] * z).sum(-1, keepdim=True)
            out.append(torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below)))
        return torch.stack(out, dim=-2)
    state, z = state + k.mT @ v, z + k.sum(-2)
    above, below = q @ state, (q * z.unsqueeze(-2)).sum(-1, keepdim=True)
    return torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below))

# %% efficient/linear | wrong | causal: a word reads before it has added itself
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1], dtype=v.dtype, device=v.device)
    z = torch.zeros(*k.shape[:-2], k.shape[-1], dtype=v.dtype, device=v.device)
    out = []
    if causal:
        for i in range(q.shape[-2]):
            above = (q[..., i, :, None] * state).sum(-2)
            below = (q[..., i, :] * z).sum(-1, keepdim=True)
            state = state + k[..., i, :, None] * v[..., i, None, :]
            z = z + k[..., i, :]
            out.append(torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below)))
        return torch.stack(out, dim=-2)
    state, z = state + k.mT @ v, z + k.sum(-2)
    above, below = q @ state, (q * z.unsqueeze(-2)).sum(-1, keepdim=True)
    return torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below))

# %% efficient/linear | wrong | causal divides by the sum over all words
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1], dtype=v.dtype, device=v.device)
    z = torch.zeros(*k.shape[:-2], k.shape[-1], dtype=v.dtype, device=v.device)
    out = []
    if causal:
        z = k.sum(-2)
        for i in range(q.shape[-2]):
            state = state + k[..., i, :, None] * v[..., i, None, :]
            above = (q[..., i, :, None] * state).sum(-2)
            below = (q[..., i, :] * z).sum(-1, keepdim=True)
            out.append(torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below)))
        return torch.stack(out, dim=-2)
    state, z = state + k.mT @ v, z + k.sum(-2)
    above, below = q @ state, (q * z.unsqueeze(-2)).sum(-1, keepdim=True)
    return torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below))

# %% efficient/linear | wrong | where nothing is found it divides by zero: NaN
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1], dtype=v.dtype, device=v.device)
    z = torch.zeros(*k.shape[:-2], k.shape[-1], dtype=v.dtype, device=v.device)
    out = []
    if causal:
        for i in range(q.shape[-2]):
            state = state + k[..., i, :, None] * v[..., i, None, :]
            z = z + k[..., i, :]
            above = (q[..., i, :, None] * state).sum(-2)
            below = (q[..., i, :] * z).sum(-1, keepdim=True)
            out.append(above / below)
        return torch.stack(out, dim=-2)
    state, z = state + k.mT @ v, z + k.sum(-2)
    above, below = q @ state, (q * z.unsqueeze(-2)).sum(-1, keepdim=True)
    return above / below

# %% efficient/linear | right | the causal form in chunks of d_k words: a small square within, a state between
def linear_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    phi = lambda x: F.elu(x).add(1)
    asked, found = phi(q), phi(k)
    told = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
    if not causal:
        mixed = asked @ (found.mT @ told)
    else:
        pieces, size = [], max(1, q.shape[-1])
        state = torch.zeros_like(found[..., :1, :].mT @ told[..., :1, :])
        for a, b, c in zip(asked.split(size, -2), found.split(size, -2), told.split(size, -2)):
            pieces.append(a @ state + (a @ b.mT).tril() @ c)
            state = state + b.mT @ c
        mixed = torch.cat(pieces, dim=-2)
    above, below = mixed[..., :-1], mixed[..., -1:]
    empty = below == 0
    return (above / below.masked_fill(empty, 1)).masked_fill(empty, 0)

# %% efficient/linformer | wrong | divides by the root of the number of mixtures
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    n = k.shape[-2]
    if e.shape != f.shape or e.shape[0] != n:
        raise ValueError("projections")
    keys, values = e.mT @ k, f.mT @ v
    scores = q @ keys.mT / e.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ values

# %% efficient/linformer | wrong | e mixes the values, f the keys
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    n = k.shape[-2]
    if e.shape != f.shape or e.shape[0] != n:
        raise ValueError("projections")
    keys, values = f.mT @ k, e.mT @ v
    scores = q @ keys.mT / q.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ values

# %% efficient/linformer | wrong | one projection for both
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    n = k.shape[-2]
    if e.shape != f.shape or e.shape[0] != n:
        raise ValueError("projections")
    keys, values = e.mT @ k, e.mT @ v
    scores = q @ keys.mT / q.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ values

# %% efficient/linformer | wrong | the full square of weights first, then the mixtures
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    n = k.shape[-2]
    if e.shape != f.shape or e.shape[0] != n:
        raise ValueError("projections")
    keys, values = e.mT @ k, f.mT @ v
    weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ e
    return weights @ values

# %% efficient/linformer | wrong | no scale
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    n = k.shape[-2]
    if e.shape != f.shape or e.shape[0] != n:
        raise ValueError("projections")
    keys, values = e.mT @ k, f.mT @ v
    scores = q @ keys.mT
    return torch.softmax(scores, dim=-1) @ values

# %% efficient/linformer | wrong | projections of unequal shapes, or of another length, are not refused
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    n = k.shape[-2]
    e, f = e[:n], f[:n]
    m = min(e.shape[1], f.shape[1])
    e, f = e[:, :m], f[:, :m]
    keys, values = e.mT @ k, f.mT @ v
    scores = q @ keys.mT / q.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ values

# %% efficient/linformer | wrong | the projections are brought to a mean: columns that sum to one
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    n = k.shape[-2]
    if e.shape != f.shape or e.shape[0] != n:
        raise ValueError("projections")
    e, f = e.softmax(dim=0), f.softmax(dim=0)
    keys, values = e.mT @ k, f.mT @ v
    scores = q @ keys.mT / q.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ values

# %% efficient/linformer | right | einsum throughout, and a softmax written out
def linformer_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    e: Float[Tensor, "n k"],
    f: Float[Tensor, "n k"],
) -> Float[Tensor, "... n d_v"]:
    if tuple(e.shape) != tuple(f.shape) or e.size(0) != k.size(-2):
        raise ValueError(f"e and f must both be ({k.size(-2)}, k), not {e.shape} and {f.shape}")
    mixtures = einsum(e, k, "n m, ... n d -> ... m d") / q.size(-1) ** 0.25
    likeness = einsum(q / q.size(-1) ** 0.25, mixtures, "... i d, ... m d -> ... i m")
    weights = (likeness - likeness.amax(-1, keepdim=True)).exp()
    weights = weights / reduce(weights, "... m -> ... 1", "sum")
    return einsum(weights, einsum(f, v, "n m, ... n d -> ... m d"), "... i m, ... m d -> ... i d")

# %% efficient/lsh_buckets | wrong | the opposite directions come first
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    reach = x @ rotations
    return torch.cat([-reach, reach], dim=-1).argmax(dim=-1)

# %% efficient/lsh_buckets | wrong | the absolute reach: opposite words share a bucket
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    return (x @ rotations).abs().argmax(dim=-1)

# %% efficient/lsh_buckets | wrong | the opposite directions are not counted
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    return (x @ rotations).argmax(dim=-1)

# %% efficient/lsh_buckets | wrong | the bucket in which the word reaches least
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    reach = x @ rotations
    return torch.cat([reach, -reach], dim=-1).argmin(dim=-1)

# %% efficient/lsh_buckets | wrong | each direction stands beside its opposite
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    reach = x @ rotations
    return torch.stack([reach, -reach], dim=-1).flatten(-2).argmax(dim=-1)

# %% efficient/lsh_buckets | wrong | another hash: the signs are the bits of a number
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    bits = (x @ rotations > 0).long()
    powers = 2 ** torch.arange(bits.shape[-1], device=bits.device)
    return (bits * powers).sum(dim=-1)

# %% efficient/lsh_buckets | wrong | buckets are counted from 1
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    reach = x @ rotations
    return torch.cat([reach, -reach], dim=-1).argmax(dim=-1) + 1

# %% efficient/lsh_buckets | wrong | the rotations are applied from the left
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    reach = x @ rotations.T if rotations.shape[0] == rotations.shape[1] else x @ rotations
    return torch.cat([reach, -reach], dim=-1).argmax(dim=-1)

# %% efficient/lsh_buckets | right | the farthest of either sign, and which of the two is farther
def lsh_buckets(
    x: Float[Tensor, "... n d"], rotations: Float[Tensor, "d half"]
) -> Int[Tensor, "... n"]:
    reach = torch.einsum("...d,dh->...h", x, rotations)
    (top, there), (bottom, opposite) = reach.max(dim=-1), reach.min(dim=-1)
    return torch.where(top >= -bottom, there, opposite + rotations.shape[1])

# %% efficient/lsh | wrong | every word looks at itself as well
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    n, d = qk.shape[-2:]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    q = qk.take_along_dim(order.unsqueeze(-1), dim=-2)
    v = v.take_along_dim(order.unsqueeze(-1), dim=-2)
    bucket = buckets.take_along_dim(order, dim=-1)
    k = F.normalize(q, dim=-1)
    out = []
    for start in range(0, n, chunk):
        here, seen = slice(start, start + chunk), slice(max(0, start - chunk), start + chunk)
        scores = q[..., here, :] @ k[..., seen, :].mT / d**0.5
        own = order[..., here, None] == order[..., None, seen]
        allowed = (bucket[..., here, None] == bucket[..., None, seen])
        if causal:
            allowed = allowed & (order[..., here, None] >= order[..., None, seen])
        allowed = allowed | (own & ~allowed.any(-1, keepdim=True))
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
        out.append(weights @ v[..., seen, :])
    back = order.argsort(dim=-1)
    return torch.cat(out, dim=-2).take_along_dim(back.unsqueeze(-1), dim=-2)

# %% efficient/lsh | wrong | the queries are brought to length one too
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    n, d = qk.shape[-2:]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    q = qk.take_along_dim(order.unsqueeze(-1), dim=-2)
    v = v.take_along_dim(order.unsqueeze(-1), dim=-2)
    bucket = buckets.take_along_dim(order, dim=-1)
    q = k = F.normalize(q, dim=-1)
    out = []
    for start in range(0, n, chunk):
        here, seen = slice(start, start + chunk), slice(max(0, start - chunk), start + chunk)
        scores = q[..., here, :] @ k[..., seen, :].mT / d**0.5
        own = order[..., here, None] == order[..., None, seen]
        allowed = (bucket[..., here, None] == bucket[..., None, seen]) & ~own
        if causal:
            allowed = allowed & (order[..., here, None] >= order[..., None, seen])
        allowed = allowed | (own & ~allowed.any(-1, keepdim=True))
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
        out.append(weights @ v[..., seen, :])
    back = order.argsort(dim=-1)
    return torch.cat(out, dim=-2).take_along_dim(back.unsqueeze(-1), dim=-2)

# %% efficient/lsh | wrong | the chunk before is not seen
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    n, d = qk.shape[-2:]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    q = qk.take_along_dim(order.unsqueeze(-1), dim=-2)
    v = v.take_along_dim(order.unsqueeze(-1), dim=-2)
    bucket = buckets.take_along_dim(order, dim=-1)
    k = F.normalize(q, dim=-1)
    out = []
    for start in range(0, n, chunk):
        here, seen = slice(start, start + chunk), slice(start, start + chunk)
        scores = q[..., here, :] @ k[..., seen, :].mT / d**0.5
        own = order[..., here, None] == order[..., None, seen]
        allowed = (bucket[..., here, None] == bucket[..., None, seen]) & ~own
        if causal:
            allowed = allowed & (order[..., here, None] >= order[..., None, seen])
        allowed = allowed | (own & ~allowed.any(-1, keepdim=True))
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
        out.append(weights @ v[..., seen, :])
    back = order.argsort(dim=-1)
    return torch.cat(out, dim=-2).take_along_dim(back.unsqueeze(-1), dim=-2)

# %% efficient/lsh | wrong | the words are not put back into their order
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    n, d = qk.shape[-2:]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    q = qk.take_along_dim(order.unsqueeze(-1), dim=-2)
    v = v.take_along_dim(order.unsqueeze(-1), dim=-2)
    bucket = buckets.take_along_dim(order, dim=-1)
    k = F.normalize(q, dim=-1)
    out = []
    for start in range(0, n, chunk):
        here, seen = slice(start, start + chunk), slice(max(0, start - chunk), start + chunk)
        scores = q[..., here, :] @ k[..., seen, :].mT / d**0.5
        own = order[..., here, None] == order[..., None, seen]
        allowed = (bucket[..., here, None] == bucket[..., None, seen]) & ~own
        if causal:
            allowed = allowed & (order[..., here, None] >= order[..., None, seen])
        allowed = allowed | (own & ~allowed.any(-1, keepdim=True))
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
        out.append(weights @ v[..., seen, :])
    return torch.cat(out, dim=-2)

# %% efficient/lsh | wrong | the words are put back by the order itself, not by its inverse
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    n, d = qk.shape[-2:]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    q = qk.take_along_dim(order.unsqueeze(-1), dim=-2)
    v = v.take_along_dim(order.unsqueeze(-1), dim=-2)
    bucket = buckets.take_along_dim(order, dim=-1)
    k = F.normalize(q, dim=-1)
    out = []
    for start in range(0, n, chunk):
        here, seen = slice(start, start + chunk), slice(max(0, start - chunk), start + chunk)
        scores = q[..., here, :] @ k[..., seen, :].mT / d**0.5
        own = order[..., here, None] == order[..., None, seen]
        allowed = (bucket[..., here, None] == bucket[..., None, seen]) & ~own
        if causal:
            allowed = allowed & (order[..., here, None] >= order[..., None, seen])
        allowed = allowed | (own & ~allowed.any(-1, keepdim=True))
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
        out.append(weights @ v[..., seen, :])
    back = order
    return torch.cat(out, dim=-2).take_along_dim(back.unsqueeze(-1), dim=-2)

# %% efficient/lsh | wrong | a word that sees nothing else gets zeros
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    n, d = qk.shape[-2:]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    q = qk.take_along_dim(order.unsqueeze(-1), dim=-2)
    v = v.take_along_dim(order.unsqueeze(-1), dim=-2)
    bucket = buckets.take_along_dim(order, dim=-1)
    k = F.normalize(q, dim=-1)
    out = []
    for start in range(0, n, chunk):
        here, seen = slice(start, start + chunk), slice(max(0, start - chunk), start + chunk)
        scores = q[..., here, :] @ k[..., seen, :].mT / d**0.5
        own = order[..., here, None] == order[..., None, seen]
        allowed = (bucket[..., here, None] == bucket[..., None, seen]) & ~own
        if causal:
            allowed = allowed & (order[..., here, None] >= order[..., None, seen])
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1).nan_to_num(0.0)
        out.append(weights @ v[..., seen, :])
    back = order.argsort(dim=-1)
    return torch.cat(out, dim=-2).take_along_dim(back.unsqueeze(-1), dim=-2)

# %% efficient/lsh | wrong | causal is not looked at
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    n, d = qk.shape[-2:]
    if n % chunk:
        raise ValueError("chunk does not divide n")
    order = buckets.argsort(dim=-1, stable=True)
    q = qk.take_along_dim(order.unsqueeze(-1), dim=-2)
    v = v.take_along_dim(order.unsqueeze(-1), dim=-2)
    bucket = buckets.take_along_dim(order, dim=-1)
    k = F.normalize(q, dim=-1)
    out = []
    for start in range(0, n, chunk):
        here, seen = slice(start, start + chunk), slice(max(0, start - chunk), start + chunk)
        scores = q[..., here, :] @ k[..., seen, :].mT / d**0.5
        own = order[..., here, None] == order[..., None, seen]
        allowed = (bucket[..., here, None] == bucket[..., None, seen]) & ~own
        allowed = allowed | (own & ~allowed.any(-1, keepdim=True))
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
        out.append(weights @ v[..., seen, :])
    back = order.argsort(dim=-1)
    return torch.cat(out, dim=-2).take_along_dim(back.unsqueeze(-1), dim=-2)

# %% efficient/lsh | right | all chunks at once as an axis, each beside a copy of its forerunner
def lsh_attention(
    qk: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    buckets: Int[Tensor, "... n"],
    chunk: int,
    causal: bool = False,
) -> Float[Tensor, "... n d_v"]:
    *batch, n, d = qk.shape
    if n % chunk != 0:
        raise ValueError(f"chunks of {chunk} words do not cover {n} words")
    order = torch.sort(buckets, dim=-1, stable=True).indices
    sort = lambda x: torch.gather(x, -2, order.unsqueeze(-1).expand(*x.shape))
    cut = lambda x: x.unflatten(-2, (-1, chunk))
    behind = lambda x: torch.cat([torch.cat([x[..., -1:, :, :], x[..., :-1, :, :]], -3), x], dim=-2)
    asks, tells = cut(sort(qk)), behind(cut(sort(v)))
    length = asks.norm(dim=-1, keepdim=True)
    names = behind(asks / length.masked_fill(length == 0, 1))
    place = cut(order.unsqueeze(-1))
    bucket = cut(torch.gather(buckets, -1, order).unsqueeze(-1))
    place_seen, bucket_seen = behind(place).mT, behind(bucket).mT
    may = (bucket == bucket_seen) & (place != place_seen)
    may[..., 0, :, :chunk] = False
    if causal:
        may = may & (place_seen < place)
    itself = place == place_seen
    itself[..., 0, :, :chunk] = False
    may = torch.where(may.any(-1, keepdim=True), may, itself)
    scores = (asks @ names.mT) / d**0.5
    weights = torch.where(may, scores, -torch.inf).softmax(-1)
    sorted_result = (weights @ tells).flatten(-3, -2)
    where_now = order.unsqueeze(-1).expand(*sorted_result.shape)
    return torch.zeros_like(sorted_result).scatter(-2, where_now, sorted_result)

# %% efficient/memory_compressed | wrong | the last state is dropped when it is not full
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    if stride < 1:
        raise ValueError("stride must be at least 1")
    width, n = weight.shape[0], x.shape[-2]
    states = n // stride
    missing = max(0, (states - 1) * stride + width - n)
    padded = F.pad(x, (0, 0, 0, missing))
    last = (states - 1) * stride + 1
    words = [padded[..., w : w + last : stride, :] for w in range(width)]
    words = torch.stack(words, dim=-2)
    return einsum(words, weight, "... state w d_in, w d_in d_out -> ... state d_out")

# %% efficient/memory_compressed | wrong | the zeros stand before the text
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    if stride < 1:
        raise ValueError("stride must be at least 1")
    width, n = weight.shape[0], x.shape[-2]
    states = -(-n // stride)
    missing = max(0, (states - 1) * stride + width - n)
    padded = F.pad(x, (0, 0, missing, 0))
    last = (states - 1) * stride + 1
    words = [padded[..., w : w + last : stride, :] for w in range(width)]
    words = torch.stack(words, dim=-2)
    return einsum(words, weight, "... state w d_in, w d_in d_out -> ... state d_out")

# %% efficient/memory_compressed | wrong | W_0 meets the rightmost word
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    if stride < 1:
        raise ValueError("stride must be at least 1")
    width, n = weight.shape[0], x.shape[-2]
    states = -(-n // stride)
    missing = max(0, (states - 1) * stride + width - n)
    padded = F.pad(x, (0, 0, 0, missing))
    last = (states - 1) * stride + 1
    words = [padded[..., w : w + last : stride, :] for w in range(width)]
    words = torch.stack(words, dim=-2)
    return einsum(words, weight.flip(0), "... state w d_in, w d_in d_out -> ... state d_out")

# %% efficient/memory_compressed | wrong | a stride below 1 fails in Python itself
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    width, n = weight.shape[0], x.shape[-2]
    states = -(-n // stride)
    missing = max(0, (states - 1) * stride + width - n)
    padded = F.pad(x, (0, 0, 0, missing))
    last = (states - 1) * stride + 1
    words = [padded[..., w : w + last : stride, :] for w in range(width)]
    words = torch.stack(words, dim=-2)
    return einsum(words, weight, "... state w d_in, w d_in d_out -> ... state d_out")

# %% efficient/memory_compressed | wrong | the stride is not looked at: the states do not overlap
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    if stride < 1:
        raise ValueError("stride must be at least 1")
    width, n = weight.shape[0], x.shape[-2]
    stride = width
    states = -(-n // stride)
    missing = max(0, (states - 1) * stride + width - n)
    padded = F.pad(x, (0, 0, 0, missing))
    last = (states - 1) * stride + 1
    words = [padded[..., w : w + last : stride, :] for w in range(width)]
    words = torch.stack(words, dim=-2)
    return einsum(words, weight, "... state w d_in, w d_in d_out -> ... state d_out")

# %% efficient/memory_compressed | wrong | every state has zeros on both sides, as word_window
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    if stride < 1:
        raise ValueError("stride must be at least 1")
    width, n = weight.shape[0], x.shape[-2]
    states = -(-n // stride)
    missing = max(0, (states - 1) * stride + width - n)
    padded = F.pad(x, (0, 0, width // 2, missing))
    last = (states - 1) * stride + 1
    words = [padded[..., w : w + last : stride, :] for w in range(width)]
    words = torch.stack(words, dim=-2)
    return einsum(words, weight, "... state w d_in, w d_in d_out -> ... state d_out")

# %% efficient/memory_compressed | wrong | as many states as full windows fit, as conv1d without padding
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    if stride < 1:
        raise ValueError("stride must be at least 1")
    width, n = weight.shape[0], x.shape[-2]
    states = (n - width) // stride + 1
    missing = max(0, (states - 1) * stride + width - n)
    padded = F.pad(x, (0, 0, 0, missing))
    last = (states - 1) * stride + 1
    words = [padded[..., w : w + last : stride, :] for w in range(width)]
    words = torch.stack(words, dim=-2)
    return einsum(words, weight, "... state w d_in, w d_in d_out -> ... state d_out")

# %% efficient/memory_compressed | right | a table of indices, with one word of zeros for all that is not there
def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    if not stride >= 1:
        raise ValueError(f"the stride must be 1 or more, not {stride}")
    width, d_in, d_out = weight.shape
    n = x.size(-2)
    first = torch.arange(0, n, stride, device=x.device)
    index = (first[:, None] + torch.arange(width, device=x.device)).clamp(max=n)
    words = F.pad(x, (0, 0, 0, 1))[..., index, :]
    return words.flatten(-2) @ weight.reshape(width * d_in, d_out)

# %% efficient/reversible | wrong | f and g change places
from course_lib.efficient.reversible import halves


class ReversibleBlock(nn.Module):

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        y1, y2 = halves(y)
        x2 = y2 - self.f(y1)
        x1 = y1 - self.g(x2)
        return torch.cat([x1, x2], dim=-1)

# %% efficient/reversible | wrong | adds again instead of taking off
from course_lib.efficient.reversible import halves


class ReversibleBlock(nn.Module):

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        y1, y2 = halves(y)
        x2 = y2 + self.g(y1)
        x1 = y1 + self.f(x2)
        return torch.cat([x1, x2], dim=-1)

# %% efficient/reversible | wrong | the halves are returned in the other order
from course_lib.efficient.reversible import halves


class ReversibleBlock(nn.Module):

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        y1, y2 = halves(y)
        x2 = y2 - self.g(y1)
        x1 = y1 - self.f(x2)
        return torch.cat([x2, x1], dim=-1)

# %% efficient/reversible | wrong | the pair is returned instead of one tensor
from course_lib.efficient.reversible import halves


class ReversibleBlock(nn.Module):

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        y1, y2 = halves(y)
        x2 = y2 - self.g(y1)
        x1 = y1 - self.f(x2)
        return x1, x2

# %% efficient/reversible | wrong | f reads the second half of the output, not that of the input
from course_lib.efficient.reversible import halves


class ReversibleBlock(nn.Module):

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        y1, y2 = halves(y)
        x2 = y2 - self.g(y1)
        x1 = y1 - self.f(y2)
        return torch.cat([x1, x2], dim=-1)

# %% efficient/reversible | wrong | the words are cut along the sentence instead of the last axis
from course_lib.efficient.reversible import halves


class ReversibleBlock(nn.Module):

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        y1, y2 = y.chunk(2, dim=-2)
        x2 = y2 - self.g(y1)
        x1 = y1 - self.f(x2)
        return torch.cat([x1, x2], dim=-2)

# %% efficient/reversible | wrong | an odd last axis is cut unequally, not refused
from course_lib.efficient.reversible import halves


class ReversibleBlock(nn.Module):

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        half = y.shape[-1] // 2
        y1, y2 = y[..., :half], y[..., half : 2 * half]
        x2 = y2 - self.g(y1)
        x1 = y1 - self.f(x2)
        return torch.cat([x1, x2, y[..., 2 * half :]], dim=-1)

# %% efficient/reversible | right | clones, changed in place from the last to the first
from course_lib.efficient.reversible import halves


class ReversibleBlock(nn.Module):

    def __init__(self, f: Callable, g: Callable):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        # cut each word into halves
        x1, x2 = halves(x)
        # let the second half change the first, then the changed first half the second
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=-1)

    def inverse(self, y: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        first, second = (half.clone() for half in halves(y))
        second = second.sub(self.g(first))
        first = first.sub(self.f(second))
        return torch.concat((first, second), -1)

# %% efficient/tiled | wrong | the peak begins at 0, so rows of very low scores vanish
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    out = []
    for a in range(0, q.shape[-2], block):
        qa = q[..., a : a + block, :] / q.shape[-1] ** 0.5
        m = torch.zeros(*qa.shape[:-1], 1, dtype=q.dtype, device=q.device)
        l, o = torch.zeros_like(m), 0
        for b in range(0, k.shape[-2], block):
            s = qa @ k[..., b : b + block, :].mT
            m_new = torch.maximum(m, s.max(dim=-1, keepdim=True).values)
            p = torch.exp(s - m_new)
            l = l * torch.exp(m - m_new) + p.sum(dim=-1, keepdim=True)
            o = o * torch.exp(m - m_new) + p @ v[..., b : b + block, :]
            m = m_new
        out.append(o / l)
    return torch.cat(out, dim=-2)

# %% efficient/tiled | wrong | keys that do not fill a block are left out
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    d, n_q, n_k = q.shape[-1], q.shape[-2], k.shape[-2]
    out = []
    for a in range(0, n_q, block):
        rows = q[..., a : a + block, :] / d**0.5
        peak = torch.full((*rows.shape[:-1], 1), -torch.inf, dtype=q.dtype, device=q.device)
        total = torch.zeros_like(peak)
        values = torch.zeros(*rows.shape[:-1], v.shape[-1], dtype=v.dtype, device=v.device)
        for b in range(0, n_k - block + 1, block):
            scores = rows @ k[..., b : b + block, :].mT
            new = torch.maximum(peak, scores.amax(-1, keepdim=True))
            exps, shrink = (scores - new).exp(), (peak - new).exp()
            total = total * shrink + exps.sum(-1, keepdim=True)
            values = values * shrink + exps @ v[..., b : b + block, :]
            peak = new
        out.append(values / total)
    return torch.cat(out, dim=-2)

# %% efficient/tiled | wrong | the sum of exponentials is not shrunk when the peak rises
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    d, n_q, n_k = q.shape[-1], q.shape[-2], k.shape[-2]
    out = []
    for a in range(0, n_q, block):
        rows = q[..., a : a + block, :] / d**0.5
        peak = torch.full((*rows.shape[:-1], 1), -torch.inf, dtype=q.dtype, device=q.device)
        total = torch.zeros_like(peak)
        values = torch.zeros(*rows.shape[:-1], v.shape[-1], dtype=v.dtype, device=v.device)
        for b in range(0, n_k, block):
            scores = rows @ k[..., b : b + block, :].mT
            new = torch.maximum(peak, scores.amax(-1, keepdim=True))
            exps, shrink = (scores - new).exp(), (peak - new).exp()
            total = total + exps.sum(-1, keepdim=True)
            values = values * shrink + exps @ v[..., b : b + block, :]
            peak = new
        out.append(values / total)
    return torch.cat(out, dim=-2)

# %% efficient/tiled | wrong | the sum of values is not shrunk when the peak rises
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    d, n_q, n_k = q.shape[-1], q.shape[-2], k.shape[-2]
    out = []
    for a in range(0, n_q, block):
        rows = q[..., a : a + block, :] / d**0.5
        peak = torch.full((*rows.shape[:-1], 1), -torch.inf, dtype=q.dtype, device=q.device)
        total = torch.zeros_like(peak)
        values = torch.zeros(*rows.shape[:-1], v.shape[-1], dtype=v.dtype, device=v.device)
        for b in range(0, n_k, block):
            scores = rows @ k[..., b : b + block, :].mT
            new = torch.maximum(peak, scores.amax(-1, keepdim=True))
            exps, shrink = (scores - new).exp(), (peak - new).exp()
            total = total * shrink + exps.sum(-1, keepdim=True)
            values = values + exps @ v[..., b : b + block, :]
            peak = new
        out.append(values / total)
    return torch.cat(out, dim=-2)

# %% efficient/tiled | wrong | no peak is kept: large scores overflow
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    d, n_q, n_k = q.shape[-1], q.shape[-2], k.shape[-2]
    out = []
    for a in range(0, n_q, block):
        rows = q[..., a : a + block, :] / d**0.5
        peak = torch.full((*rows.shape[:-1], 1), -torch.inf, dtype=q.dtype, device=q.device)
        total = torch.zeros_like(peak)
        values = torch.zeros(*rows.shape[:-1], v.shape[-1], dtype=v.dtype, device=v.device)
        for b in range(0, n_k, block):
            scores = rows @ k[..., b : b + block, :].mT
            new = torch.maximum(peak, scores.amax(-1, keepdim=True))
            exps, shrink = scores.exp(), 1.0
            total = total * shrink + exps.sum(-1, keepdim=True)
            values = values * shrink + exps @ v[..., b : b + block, :]
            peak = new
        out.append(values / total)
    return torch.cat(out, dim=-2)

# %% efficient/tiled | wrong | the peak is that of the last tile, not the largest so far
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    d, n_q, n_k = q.shape[-1], q.shape[-2], k.shape[-2]
    out = []
    for a in range(0, n_q, block):
        rows = q[..., a : a + block, :] / d**0.5
        peak = torch.full((*rows.shape[:-1], 1), -torch.inf, dtype=q.dtype, device=q.device)
        total = torch.zeros_like(peak)
        values = torch.zeros(*rows.shape[:-1], v.shape[-1], dtype=v.dtype, device=v.device)
        for b in range(0, n_k, block):
            scores = rows @ k[..., b : b + block, :].mT
            new = scores.amax(-1, keepdim=True)
            exps, shrink = (scores - new).exp(), (peak - new).clamp(max=0).exp()
            total = total * shrink + exps.sum(-1, keepdim=True)
            values = values * shrink + exps @ v[..., b : b + block, :]
            peak = new
        out.append(values / total)
    return torch.cat(out, dim=-2)

# %% efficient/tiled | wrong | every tile is scored against its own block of queries only: the diagonal of tiles
def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    out = []
    for a in range(0, q.shape[-2], block):
        qi, ki, vi = q[..., a : a + block, :], k[..., a : a + block, :], v[..., a : a + block, :]
        out.append((qi @ ki.mT / q.shape[-1] ** 0.5).softmax(-1) @ vi)
    return torch.cat(out, dim=-2)

# %% efficient/tiled | right | each tile gives its own average and the logarithm of its sum; two are joined by logaddexp
def tile(rows, keys, values):
    scores = rows @ keys.mT
    return torch.softmax(scores, dim=-1) @ values, scores.logsumexp(dim=-1, keepdim=True)


def tiled_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
) -> Float[Tensor, "... query d_v"]:
    answers = []
    for rows in (q * q.size(-1) ** -0.5).split(block, dim=-2):
        mean, weight = None, None
        for keys, values in zip(k.split(block, dim=-2), v.split(block, dim=-2)):
            here, here_weight = tile(rows, keys, values)
            if mean is None:
                mean, weight = here, here_weight
            else:
                share = torch.sigmoid(here_weight - weight)
                mean = mean + share * (here - mean)
                weight = torch.logaddexp(weight, here_weight)
        answers.append(mean)
    return torch.cat(answers, dim=-2)

# %% efficient/window_mask | wrong | sees one word too few on either side: < in place of <=
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    i = torch.arange(n)
    return (i[:, None] - i).abs() < width // 2

# %% efficient/window_mask | wrong | width words to either side
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    i = torch.arange(n)
    return (i[:, None] - i).abs() <= width

# %% efficient/window_mask | wrong | (width - 1) // 2: the same for odd widths only
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    i = torch.arange(n)
    return (i[:, None] - i).abs() <= (width - 1) // 2

# %% efficient/window_mask | wrong | words to the left only
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    i = torch.arange(n)
    far = i[:, None] - i
    return (far >= 0) & (far <= width // 2)

# %% efficient/window_mask | wrong | True = hidden
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    i = torch.arange(n)
    return (i[:, None] - i).abs() > width // 2

# %% efficient/window_mask | wrong | a word does not see itself
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    i = torch.arange(n)
    far = (i[:, None] - i).abs()
    return (far > 0) & (far <= width // 2)

# %% efficient/window_mask | wrong | numbers 0 and 1 instead of booleans
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    return torch.ones(n, n).tril(width // 2).triu(-(width // 2))

# %% efficient/window_mask | right | a lower triangle cut by an upper one
def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    reach = width // 2
    everything = torch.ones((n, n), dtype=torch.bool)
    return torch.logical_and(everything.tril(reach), everything.triu(-reach))

# %% efficient/window | wrong | the pairs that are too far apart are not hidden
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    n, d, half = q.shape[-2], q.shape[-1], width // 2
    block = max(half, 1)
    out = []
    for start in range(0, n, block):
        stop = min(start + block, n)
        low, high = max(0, start - half), min(n, stop + half)
        scores = q[..., start:stop, :] @ k[..., low:high, :].mT / d**0.5
        i = torch.arange(start, stop, device=q.device)[:, None]
        j = torch.arange(low, high, device=q.device)
        scores = scores + 0 * (i - j)
        out.append(scores.softmax(-1) @ v[..., low:high, :])
    return torch.cat(out, dim=-2)

# %% efficient/window | wrong | width words to either side
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    n, d, half = q.shape[-2], q.shape[-1], width
    block = max(half, 1)
    out = []
    for start in range(0, n, block):
        stop = min(start + block, n)
        low, high = max(0, start - half), min(n, stop + half)
        scores = q[..., start:stop, :] @ k[..., low:high, :].mT / d**0.5
        i = torch.arange(start, stop, device=q.device)[:, None]
        j = torch.arange(low, high, device=q.device)
        scores = scores.masked_fill((i - j).abs() > half, -torch.inf)
        out.append(scores.softmax(-1) @ v[..., low:high, :])
    return torch.cat(out, dim=-2)

# %% efficient/window | wrong | words that do not fill a block are left out
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    n, d, half = q.shape[-2], q.shape[-1], width // 2
    block = max(half, 1)
    out = []
    for start in range(0, n - n % block, block):
        stop = min(start + block, n)
        low, high = max(0, start - half), min(n, stop + half)
        scores = q[..., start:stop, :] @ k[..., low:high, :].mT / d**0.5
        i = torch.arange(start, stop, device=q.device)[:, None]
        j = torch.arange(low, high, device=q.device)
        scores = scores.masked_fill((i - j).abs() > half, -torch.inf)
        out.append(scores.softmax(-1) @ v[..., low:high, :])
    return torch.cat(out, dim=-2)

# %% efficient/window | wrong | the blocks do not look beyond their own borders
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    n, d, half = q.shape[-2], q.shape[-1], width // 2
    block = max(half, 1)
    out = []
    for start in range(0, n, block):
        stop = min(start + block, n)
        low, high = start, stop
        scores = q[..., start:stop, :] @ k[..., low:high, :].mT / d**0.5
        i = torch.arange(start, stop, device=q.device)[:, None]
        j = torch.arange(low, high, device=q.device)
        scores = scores.masked_fill((i - j).abs() > half, -torch.inf)
        out.append(scores.softmax(-1) @ v[..., low:high, :])
    return torch.cat(out, dim=-2)

# %% efficient/window | wrong | half is (width - 1) // 2: one short for even widths
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    n, d, half = q.shape[-2], q.shape[-1], (width - 1) // 2
    block = max(half, 1)
    out = []
    for start in range(0, n, block):
        stop = min(start + block, n)
        low, high = max(0, start - half), min(n, stop + half)
        scores = q[..., start:stop, :] @ k[..., low:high, :].mT / d**0.5
        i = torch.arange(start, stop, device=q.device)[:, None]
        j = torch.arange(low, high, device=q.device)
        scores = scores.masked_fill((i - j).abs() > half, -torch.inf)
        out.append(scores.softmax(-1) @ v[..., low:high, :])
    return torch.cat(out, dim=-2)

# %% efficient/window | wrong | a block always begins half a window early, and at the beginning that counts from behind
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    n, d, half = q.shape[-2], q.shape[-1], width // 2
    block = max(half, 1)
    out = []
    for start in range(0, n, block):
        stop = min(start + block, n)
        low, high = start - half, min(n, stop + half)
        scores = q[..., start:stop, :] @ k[..., low:high, :].mT / d**0.5
        i = torch.arange(start, stop, device=q.device)[:, None]
        j = torch.arange(low, high, device=q.device)
        scores = scores.masked_fill((i - j).abs() > half, -torch.inf)
        out.append(scores.softmax(-1) @ v[..., low:high, :])
    return torch.cat(out, dim=-2)

# %% efficient/window | wrong | zeros are put around the text, and take part in the softmax
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    n, d, half = q.shape[-2], q.shape[-1], width // 2
    keys = F.pad(k, (0, 0, half, half)).unfold(-2, 2 * half + 1, 1)
    values = F.pad(v, (0, 0, half, half)).unfold(-2, 2 * half + 1, 1)
    scores = einsum(q, keys, "... n d, ... n d w -> ... n w") / d**0.5
    return einsum(scores.softmax(-1), values, "... n w, ... n d w -> ... n d")

# %% efficient/window | right | as many words at a time as n // width, each with a table of its own neighbours
def window_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    width: int,
) -> Float[Tensor, "... n d_v"]:
    n, d = q.shape[-2:]
    reach = width // 2
    steps = torch.arange(-reach, reach + 1, device=q.device)
    answers = [v[..., :0, :]]
    for some in torch.arange(n, device=q.device).split(max(1, n // len(steps))):
        index = some[:, None] + steps
        outside = (index < 0) | (index >= n)
        index = index.clamp(0, n - 1)
        scores = (k[..., index, :] @ q[..., some, :, None]).squeeze(-1) / d**0.5
        weights = torch.softmax(scores.masked_fill(outside, -torch.inf), dim=-1)
        answers.append((weights.unsqueeze(-2) @ v[..., index, :]).squeeze(-2))
    return torch.cat(answers, dim=-2)
