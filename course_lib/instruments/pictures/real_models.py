"""Lesson 09's pictures: three outlines, a gate, shared keys and a cache."""

from course_lib.instruments.drawings import SMALL, Box, Diagram, Role

# what the model of 2017 does not have
NEW: dict[str, Role] = {
    "learned positions": "position",
    "norm": "norm",
    "GELU network": "network",
    "mean": "value",
    "recurrence": "query",
    "shared": "query",
    "SwiGLU": "network",
    "RMSNorm": "norm",
}
ENCODER = ["embedding", "positions", "self-attention", "add & norm", "feed-forward", "add & norm"]
MINILM = [
    *("embedding", "learned positions", "norm"),
    *("self-attention", "add & norm", "GELU network", "add & norm", "mean"),
]
DECODER = [
    *("embedding", "positions", "recurrence", "add & norm", "cross-attention", "add & norm"),
    *("feed-forward", "add & norm", "linear, softmax"),
]
SMOLLM2 = [
    *("embedding", "RMSNorm", "shared", "add", "RMSNorm", "SwiGLU", "add", "RMSNorm"),
    "linear, softmax",
]
# x, width, boxes from below, the block's first box and number of boxes, both ends
COLUMNS = (
    (1.5, 2.8, MINILM, 3, 4, "tokens", "one vector"),
    (4.8, 2.4, ENCODER, 2, 4, "source", ""),
    (8.05, 2.5, DECODER, 2, 6, "target so far", "next token"),
    (11.25, 2.7, SMOLLM2, 1, 6, "tokens so far", "next token"),
)
STEP = 0.8


def outlines() -> None:
    """Show MiniLM, Marian and SmolLM2 from their input to their output, what is new in colour."""
    diagram, stacks = Diagram(), []
    for x, width, names, first, count, below, above in COLUMNS:
        boxes: list[Box] = []
        for i, name in enumerate(names):
            text, role = "" if name == "shared" else name, NEW.get(name, "plain")
            boxes.append(diagram.box(text, (x, i * STEP), role, size=(width, 0.62)))
        for lower, upper in zip([(x, -0.75), *boxes], boxes, strict=False):
            diagram.arrow(lower, upper, role="dim")
        middle = (first + (count - 1) / 2) * STEP
        diagram.frame("", (x, middle), (width + 0.25, count * STEP - 0.04))
        diagram.text(below, (x, -0.95), size=SMALL)
        if above:
            top = boxes[-1].at[1]
            diagram.arrow(boxes[-1], (x, top + 0.75), role="dim")
            diagram.text(above, (x, top + 0.95), size=SMALL)
        stacks.append(boxes)
    diagram.text("masked self-attention,\nshared keys, rotary", stacks[3][2].at, size=8)
    corners = [(4.8, 4.7), (6.4, 4.7), (6.4, 3.2)]
    diagram.arrow(stacks[1][-1], stacks[2][4], via=corners, role="dim")
    for text, x in (
        ("MiniLM\nblock × 6", 1.5),
        ("Marian\nblocks × 6 and × 2", 6.45),
        ("SmolLM2\nblock × 30", 11.25),
    ):
        diagram.text(text, (x, 8.2))
    diagram.show(
        "Three models from below. MiniLM: embedding, learned positions, norm, six post-norm "
        "encoder blocks with a GELU network, mean, one vector. Marian: six post-norm encoder "
        "blocks; two decoder blocks of a recurrence, cross-attention and a feed-forward network, "
        "each with add & norm; linear, softmax. SmolLM2: embedding, thirty pre-norm blocks of "
        "masked attention with shared keys and rotary positions, and of SwiGLU, each after an "
        "RMSNorm; RMSNorm; linear, softmax."
    )


def gates() -> None:
    """Show the feed-forward network of 2017 beside SwiGLU, with shapes."""
    diagram, size = Diagram(), (2.4, 0.7)
    outs = []
    for x, function, height in ((1.2, "max(0, z)", 4.5), (6.2, "swish(z)", 6.0)):
        first = diagram.box("$W_1$", (x, 1.3), "network", size=size)
        bend = diagram.box(function, (x, 2.9), "network", size=size)
        diagram.arrow(first, bend, r"$n \times d_{ff}$")
        diagram.arrow((x, 0), first, r"$n \times d$")
        out = diagram.box("$W_2$", (x, height), "network", size=size)
        diagram.arrow(out, (x, height + 1.2), r"$n \times d$")
        outs.append((bend, out))
    (bend, out), (gated, last) = outs
    diagram.arrow(bend, out, r"$n \times d_{ff}$")
    other = diagram.box("$W_3$", (9.6, 1.3), "network", size=size)
    gate = diagram.box("⊙", (6.2, 4.4), "weights", size=(1.0, 0.7))
    diagram.arrow((6.2, 0.2), other, via=[(9.6, 0.2)])
    diagram.arrow(gated, gate, "gate")
    diagram.arrow(other, gate, r"$n \times d_{ff}$", via=[(9.6, 4.4)])
    diagram.arrow(gate, last, r"$n \times d_{ff}$")
    for name, x in (("2017", 1.2), ("SwiGLU", 7.9)):
        diagram.text(name, (x, -0.4))
    diagram.show(
        "Two feed-forward networks from below. 2017: n by d goes through W1 to n by d_ff, through "
        "max(0, z), and through W2 back to n by d. SwiGLU: x goes to W1 and to W3; W1's result "
        "goes through swish and is multiplied with W3's entry by entry; W2 returns to n by d."
    )


def shared_keys() -> None:
    """Show nine query heads with nine, three and one key and value head."""
    diagram, wide = Diagram(), 0.38
    ways = {9: "multi-head, $G = 9$", 3: "grouped, $G = 3$\n(SmolLM2)", 1: "multi-query, $G = 1$"}
    roles: tuple[tuple[Role, float], ...] = (("key", 1.1), ("value", 0.0))
    for left, (groups, name) in zip((1.4, 5.3, 9.2), ways.items(), strict=True):
        share = 9 // groups
        for role, y in roles:
            for g in range(groups):
                x = left + wide * (g * share + (share - 1) / 2)
                diagram.box("", (x, y), role, size=(wide * share - 0.08, 0.55))
        for h in range(9):
            x = left + wide * h
            diagram.box("", (x, 2.6), "query", size=(wide - 0.08, 0.55))
            for start, end in ((2.32, 1.38), (0.82, 0.28)):
                diagram.arrow((x, start), (x, end), role="weights")
        diagram.text(name, (left + 4 * wide, -0.9), size=10)
    for text, y in (("query\nheads", 2.6), ("key\nheads", 1.1), ("value\nheads", 0.0)):
        diagram.text(text, (1.0, y), size=SMALL, align="right")
    diagram.show(
        "Nine query heads, three times. Multi-head: each has a key head and a value head of its "
        "own, nine of each. Grouped: query heads 0 to 2 share one, 3 to 5 the next, 6 to 8 the "
        "last, three of each. Multi-query: all nine share one key head and one value head."
    )


def cache_step() -> None:
    """Show one step of a key-value cache: a new token's query meets the keys of all so far."""
    diagram, cell = Diagram(), 0.26
    at = {"query": 2.2, "key": -0.3, "value": -3.2}
    token = diagram.box(
        "new token\n" r"$1 \times d_{model}$", (1.0, at["key"]), "stream", size=(2.0, 1.0)
    )
    new: dict[str, Box] = {}
    made: tuple[tuple[Role, str, str], ...] = (
        ("query", "$W_Q$", "N"),
        ("key", "$W_K$", "E"),
        ("value", "$W_V$", "S"),
    )
    for role, label, leave in made:
        new[role] = diagram.matrix(f"${role[0]}_t$", (1, 4), (3.7, at[role]), role, cell=cell)
        diagram.arrow(token, new[role], label, role=role, leave=leave)
    whole: dict[str, Box] = {}
    kept: tuple[tuple[Role, str], ...] = (
        ("key", r"$K_t: t \times d_k$"),
        ("value", r"$V_t: t \times d_v$"),
    )
    for role, name in kept:
        y = at[role]
        diagram.matrix("", (5, 4), (6.6, y + 0.86), role, cell=cell)
        row = diagram.matrix(name, (1, 4), (6.6, y), role, cell=cell)
        diagram.arrow(new[role], row, role=role)
        whole[role] = Box((6.6, y + 0.69), (1.28, 1.88))
        diagram.frame("", *whole[role])
        diagram.text("kept", (5.8, y + 0.86), size=SMALL, align="right")
    text = r"$q_t K_t^T / \sqrt{d_k}$" "\nsoftmax"
    look = diagram.box(text, (9.3, at["query"]), "weights", size=(2.3, 1.1))
    weights = diagram.matrix(r"weights: $1 \times t$", (1, 6), (11.9, 2.2), "weights", cell=cell)
    add = diagram.box("weighted sum", (11.7, whole["value"].at[1]), "plain", size=(2.4, 0.8))
    out = diagram.matrix(r"$o_t: 1 \times d_v$", (1, 4), (11.7, -4.0), "stream", cell=cell)
    diagram.arrow(new["query"], look, role="query")
    diagram.arrow(whole["key"], look, role="key", leave="E")
    diagram.arrow(look, weights)
    diagram.arrow((11.7, 1.35), add, role="weights")
    diagram.arrow(whole["value"], add, role="value")
    diagram.arrow(add, out)
    diagram.show(
        "One step with a cache. The new token, 1 by d_model, gives a query, a key and a value of "
        "one row each. The key is put below the kept rows of K, which becomes t by d_k, the value "
        "below V. The query meets all t keys: weights of 1 by t. They sum the t values to one row, "
        "o_t."
    )
