"""Cost: count the multiplications by which the tokens of a text meet (lesson 13)."""


def operations(kind: str, n: int, d: int) -> int:
    """Count the multiply-adds by which one layer mixes n tokens of size d.

    `attention` scores n^2 pairs and averages n values for each token: 2 n^2 d. `rnn` multiplies
    each token and each state by a matrix: 2 n d^2. The two are equal at n = d. Counts itself in no
    time. Source: Vaswani et al. 2017, table 1, whose orders are made exact; projections, biases and
    softmax are left out. Raises ValueError for another kind.
    """
    if kind not in ("attention", "rnn"):
        raise ValueError(f"kind must be 'attention' or 'rnn', not {kind!r}")
    # score every pair of tokens, then sum every value with every weight
    if kind == "attention":
        return 2 * n**2 * d
    # at each token, multiply the input by one matrix and the state by another
    return 2 * n * d**2
