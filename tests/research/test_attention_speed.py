"""How `make bench` takes its times, and writes them down."""

from research.benchmarks.efficient import Step, due, medians, table
from research.benchmarks.variants import OTHERS


def test_a_table_says_what_did_not_run():
    lengths = [2048, 4096, 8192, 16384, 32768, 65536]
    kept = {
        "n": lengths,
        "seconds": {"window": [n / 65536 for n in lengths], "fused dense": [1.0, 4.0, 16.0]},
        "MiB": {"window": [n // 64 for n in lengths], "fused dense": [10, 20, 40]},
    }
    *_, window, dense = table(kept).splitlines()
    assert window == "| **window** | 31 | 125 | 250 | 1,000 | 1.00 | 1.00 | 1.00 |"
    assert dense == "| fused dense | 1,000 | 16,000 | — | — | — | — | — |"
    assert "fused dense" in OTHERS


def test_a_machine_that_slows_down_changes_no_figure():
    steps = {"a": {512: [Step(1.0, 10, 0.1), Step(4.0, 10, 0.4), Step(2.0, 10, 0.2)]}}
    assert medians(steps) == {"seconds": {"a": [2.0]}, "MiB": {"a": [10]}}


def rounds(**lengths):
    return {int(n[1:]): [Step(*taken, 1.0) for taken in own] for n, own in lengths.items()}


def test_what_would_take_too_long_is_foreseen():
    assert due({}, 512)
    assert due(rounds(n512=[(1.0, 10)], n1024=[(4.0, 40)]), 2048)
    assert not due(rounds(n512=[(1.5, 10)], n1024=[(6.0, 40)]), 2048)
    assert not due(rounds(n512=[(1.0, 500)], n1024=[(4.0, 2000)]), 2048)
    assert due(rounds(n512=[(5.0, 0)], n1024=[(9.0, 20)]), 2048)


def test_what_took_long_has_fewer_rounds():
    assert due(rounds(n512=[(6.0, 10)] * 2, n1024=[(19.0, 10)]), 512)
    assert not due(rounds(n512=[(5.0, 10)] * 3), 512)
