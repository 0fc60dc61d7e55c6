"""What lesson 06 says of SmolLM2's circuit holds on every list that was measured."""

import pytest

from course_lib.instruments import results
from research.experiments.circuit import ALL

KEPT = results.load("circuit")["figures"]
WATCHED = [tuple(head) for head in KEPT["watched"]]


@pytest.fixture(params=KEPT["runs"], ids=range(len(KEPT["runs"])))
def run(request):
    return request.param


def whole(run):
    return [run["induction"][layer - 1][head - 1] for layer, head in WATCHED]


def mean(scores, silent=None):
    kept = [x for head, x in zip(WATCHED, scores, strict=True) if head != silent]
    return sum(kept) / len(kept)


def test_the_head_that_is_cut_looks_back_most_and_is_right_below(run):
    previous = {head: run["previous"][head[0] - 1][head[1] - 1] for head in ALL}
    assert max(previous, key=previous.get) == tuple(KEPT["previous"]) == (17, 1)
    assert {layer for layer, _ in WATCHED} == {18, 19}
    assert min(whole(run)) > 0.5


def test_the_loss_accuses_one_more_head_which_takes_less_of_each_score(run):
    losses = {
        head: without["second"] for head, without in zip(ALL, run["without each"], strict=True)
    }
    first, second, *_ = sorted(losses, key=losses.get, reverse=True)
    assert {first, second} == {(17, 1), (1, 6)}
    other = run["without each"][ALL.index((1, 6))]["scores"]
    assert all(after > before / 3 for after, before in zip(other, whole(run), strict=True))


def test_without_it_all_watched_heads_lose_their_target_and_the_list_is_lost(run):
    cut = run["without each"][ALL.index((17, 1))]
    assert all(
        after < 0.4 * before for after, before in zip(cut["scores"], whole(run), strict=True)
    )
    assert cut["second"] > run["second"] + 4
    assert run["second"] < 2 < 12 < run["first"]


def test_no_other_head_comes_near(run):
    left = {
        head: mean(without["scores"], silent=head) / mean(whole(run), silent=head)
        for head, without in zip(ALL, run["without each"], strict=True)
    }
    first, second, third, *others = sorted(left, key=left.get)
    assert first == (17, 1)
    assert {second, third} == {(1, 6), (2, 4)}
    assert left[second] > 2 * left[first]
    assert min(left[head] for head in others) > 0.8
    assert left[12, 2] > 0.95


def test_its_work_is_in_the_keys_and_not_in_the_queries(run):
    for keys, queries, before in zip(run["keys"], run["queries"], whole(run), strict=True):
        assert keys < 0.45 * before
        assert queries > 0.85 * before


def test_where_it_looks_steers_where_they_look(run):
    for back, of in zip((1, 2, 3), run["turned"], strict=True):
        for head in range(3):
            weights = {x: after[head] for x, after in of["after"].items()}
            assert weights.pop(str(back)) > 0.6
            assert max(weights.values()) < 0.1
        assert max(of["says"], key=of["says"].get) == str(back)
    one, two, _ = (of["says"] for of in run["turned"])
    assert one["1"] > 0.7
    assert two["1"] < 0.05
    assert two["2"] > 0.35
