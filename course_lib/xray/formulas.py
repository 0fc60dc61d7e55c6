"""The formula of each stage, as MathML that every browser of today draws by itself."""


def _i(name: str) -> str:
    return f"<mi>{name}</mi>"


def _o(sign: str) -> str:
    return f"<mo>{sign}</mo>"


def _n(number: str) -> str:
    return f"<mn>{number}</mn>"


def _row(*parts: str) -> str:
    return f"<mrow>{''.join(parts)}</mrow>"


def _sub(base: str, below: str) -> str:
    return f"<msub>{_i(base)}<mrow>{below}</mrow></msub>"


def _fraction(above: str, below: str) -> str:
    return f"<mfrac><mrow>{above}</mrow><mrow>{below}</mrow></mfrac>"


def _root(inside: str) -> str:
    return f"<msqrt>{inside}</msqrt>"


def _called(name: str, *inside: str) -> str:
    return _row(f"<mi>{name}</mi>", _o("("), *inside, _o(")"))


def _transposed(name: str) -> str:
    return f"<msup>{_i(name)}{_i('T')}</msup>"


EQUALS, PLUS, MINUS = _o("="), _o("+"), _o("−")
X, D_K, D = _i("x"), _sub("d", _i("k")), _sub("d", _i("model"))


def _w(below: str) -> str:
    return _sub("W", _i(below) if not below.isdigit() else _n(below))


def _b(below: str) -> str:
    return _sub("b", _n(below))


SCORES = _fraction(_row(_i("Q"), _transposed("K")), _root(D_K))
SQUARES = _row(
    _fraction(_n("1"), _i("d")),
    "<munder><mo>∑</mo><mi>c</mi></munder>",
    f"<msubsup>{X}{_i('c')}{_n('2')}</msubsup>",
    PLUS,
    _i("ε"),
)
VARIANCE = _row(f"<msup>{_i('σ')}{_n('2')}</msup>", PLUS, _i("ε"))
HIDDEN = {
    "relu": _called("max", _n("0"), _o(","), X, _w("1"), PLUS, _b("1")),
    "gelu": _called("gelu", X, _w("1"), PLUS, _b("1")),
    "swiglu": _row(_called("swish", X, _w("1")), _o("⊙"), X, _w("3")),
}
OUT = {kind: _row(_i("h"), _w("2"), PLUS, _b("2")) for kind in ("relu", "gelu")}
OUT["swiglu"] = _row(_i("h"), _w("2"))
LOOKS_FOR = "What each token looks for, head by head."
FOUND_BY = "What each token can be found by, head by head."
HANDS_OVER = "What each token hands over, head by head."
HEAD = _sub("head", _i("i"))

# what each side of a formula is; the sentence says in words what it means
FORMULAS: dict[str, tuple[str, str]] = {
    "embedding": (
        _row(_sub("x", _i("i")), EQUALS, _root(D), _sub("E", _i("t")), PLUS, _sub("p", _i("i"))),
        "Row t of the table E is the vector of token t; the vector of position i is added.",
    ),
    "token embedding": (
        _row(_sub("x", _i("i")), EQUALS, _sub("E", _i("t"))),
        "Row t of the table E is the vector of token t.",
    ),
    "positions": (
        _row(_sub("x", _i("i")), PLUS, _sub("p", _i("i"))),
        "The vector of position i is added to the token at position i.",
    ),
    "layer norm": (
        _row(_i("g"), _fraction(_row(X, MINUS, _i("μ")), _root(VARIANCE)), PLUS, _i("b")),
        "Each token is brought to mean 0 and variance 1, then stretched and shifted as learned.",
    ),
    "rms norm": (
        _row(_i("g"), _fraction(X, _root(SQUARES))),
        "Each token is brought to one size, then stretched as learned.",
    ),
    "queries": (
        _row(_i("Q"), EQUALS, _i("X"), _w("Q")),
        LOOKS_FOR,
    ),
    "keys": (
        _row(_i("K"), EQUALS, _i("X"), _w("K")),
        FOUND_BY,
    ),
    "values": (
        _row(_i("V"), EQUALS, _i("X"), _w("V")),
        HANDS_OVER,
    ),
    "queries across": (
        _row(_i("Q"), EQUALS, _i("Z"), _w("Q")),
        "What each target token looks for in the source, head by head.",
    ),
    "keys across": (
        _row(_i("K"), EQUALS, _i("H"), _w("K")),
        "What each source token can be found by: H are the encoder's states.",
    ),
    "values across": (
        _row(_i("V"), EQUALS, _i("H"), _w("V")),
        "What each source token hands over: H are the encoder's states.",
    ),
    "turned": (
        _row(_sub("R", _i("i")), X),
        "Each pair of columns is turned by an angle that grows with the position i.",
    ),
    "weights": (
        _row(_i("A"), EQUALS, _called("softmax", SCORES)),
        "How much each query (row) looks at each key (column). A row sums to one.",
    ),
    "weights masked": (
        _row(_i("A"), EQUALS, _row(_sub("softmax", _i("mask")), _o("("), SCORES, _o(")"))),
        "How much each query (row) looks at each key (column). A row sums to one; the mask hides "
        "the future, which gets 0.",
    ),
    "heads": (
        _row(HEAD, EQUALS, _sub("A", _i("i")), _sub("V", _i("i"))),
        "Each head's average of the values, by its weights.",
    ),
    "joined": (
        _row(
            _called(
                "Concat", _sub("head", _n("1")), _o(","), _o("…"), _o(","), _sub("head", _i("h"))
            ),
            _w("O"),
        ),
        "The heads side by side, mixed by one matrix.",
    ),
    "sum": (_row(X, PLUS, _called("f", X)), "The residual connection adds what the layer found."),
    **{
        f"hidden {kind}": (_row(_i("h"), EQUALS, formula), "The network's wide hidden layer.")
        for kind, formula in HIDDEN.items()
    },
    **{
        f"network {kind}": (formula, "Back from the hidden layer h to the size of a token.")
        for kind, formula in OUT.items()
    },
    "recurrence": (
        _row(
            _sub("c", _i("t")),
            EQUALS,
            _sub("f", _i("t")),
            _sub("c", _row(_i("t"), MINUS, _n("1"))),
            PLUS,
            _o("("),
            _n("1"),
            MINUS,
            _sub("f", _i("t")),
            _o(")"),
            _sub("x", _i("t")),
            _i("W"),
        ),
        "A running state in the place of self-attention; max(0, c) goes on.",
    ),
    "mean": (
        _row(
            _fraction(_n("1"), _i("n")), "<munder><mo>∑</mo><mi>i</mi></munder>", _sub("h", _i("i"))
        ),
        "The mean of all tokens' states: one vector for the sentence.",
    ),
    "logits": (
        _row(_i("logits"), EQUALS, _i("Y"), _transposed("E")),
        "A score for each token of the vocabulary; the softmax makes probabilities of them.",
    ),
    "block": (_called("block", X), "What the whole block returned."),
}


def mathml(formula: str) -> str:
    """Return a formula as an element that stands in a line of its own."""
    return f'<math display="block">{FORMULAS[formula][0]}</math>'
