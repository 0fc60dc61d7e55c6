from functools import partial

import pytest
import torch

from course_lib.instruments.position_schemes import (
    Alibi,
    Concatenated,
    Dependency,
    Learned,
    NoPositions,
    Reader,
    Relative,
    Rotary,
    Sinusoidal,
    answers,
    interpolated,
    naming_loss,
)
from course_lib.positions import rotary, tree_distance
from course_lib.self_attention import scaled_dot_product_attention

D = 12
SCHEMES = {
    "none": NoPositions,
    "sinusoidal": Sinusoidal,
    "learned": lambda: Learned(9, D),
    "concatenated": lambda: Concatenated(9, 4),
    "relative": lambda: Relative(2, D),
    "dependency": lambda: Dependency(3, D),
    "rotary": Rotary,
    "alibi": Alibi,
}
# a chain of six words, each the head of the next, so that paths are as long as distances
TREE = tree_distance(torch.arange(-1, 5))


@pytest.fixture(params=SCHEMES)
def name(request):
    return request.param


def reader(name, **options):
    torch.manual_seed(0)
    return Reader(SCHEMES[name](), vocab=20, d_model=D, **options).double()


def draw(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_only_plain_attention_and_the_tree_do_not_notice_an_exchange_of_words(name):
    model, x, swap = reader(name), draw(6, D), torch.tensor([0, 4, 2, 3, 1, 5])
    moved = model.read(x[swap], TREE[swap][:, swap])
    unmoved = torch.allclose(moved, model.read(x, TREE)[swap])
    assert unmoved == (name in ("none", "dependency"))


def test_schemes_of_distance_do_not_notice_a_shift_of_the_whole_sentence(name):
    model, x = reader(name), draw(6, D)
    q, k, v = draw(3, 6, D)
    hide_first = (torch.arange(6) > 0).expand(6, 6)
    rest = model.scheme.attend(q[1:], k[1:], v[1:], tree=TREE[1:, 1:])
    whole = model.scheme.attend(q, k, v, hide_first, TREE)[1:]
    torch.testing.assert_close(rest, whole)
    unmoved = torch.allclose(model.scheme.encode(x)[1:], model.scheme.encode(x[1:]))
    assert unmoved == (name not in ("sinusoidal", "learned", "concatenated"))


def test_batches_are_read_as_their_sentences_are(name):
    model, x = reader(name), draw(2, 6, D)
    chain = torch.stack([TREE, TREE.flip(0, 1)])
    together = model.read(x, chain)
    torch.testing.assert_close(together[1], model.read(x[1], chain[1]))


def test_causal_readers_do_not_see_what_follows(name):
    model, x = reader(name, causal=True), draw(6, D)
    later = x.clone()
    later[4:] += 1
    before, after = model.read(x, TREE), model.read(later, TREE)
    torch.testing.assert_close(before[:4], after[:4])
    assert not torch.allclose(before[4:], after[4:])


def test_on_a_chain_the_tree_is_the_distance_without_its_side():
    tree, relative = Dependency(5, D).double(), Relative(5, D).double()
    for table in ("key_table", "value_table"):
        half = getattr(tree, table).data
        getattr(relative, table).data = torch.cat([half.flip(0), half[1:]])
    q, k, v = draw(3, 6, D)
    torch.testing.assert_close(tree.attend(q, k, v, tree=TREE), relative.attend(q, k, v))


def test_alibi_is_plain_attention_with_a_bias_of_half_a_step():
    q, k, v = draw(3, 2, 1)
    # two words, each half a score further from the other than from itself
    scores = q @ k.mT - 0.5 * (1 - torch.eye(2))
    torch.testing.assert_close(Alibi().attend(q, k, v), torch.softmax(scores, -1) @ v)


def test_a_concatenated_position_leaves_the_words_other_columns_alone():
    scheme, x = Concatenated(9, 4).double(), draw(2, 6, D)
    placed = scheme.encode(x)
    assert placed[..., :-4].equal(x[..., :-4])
    assert placed[..., -4:].equal(scheme.table[:6].expand(2, 6, 4))


def test_a_stretched_clock_turns_four_places_as_another_turns_one():
    q, k, v = draw(3, 9, D)
    alone = torch.eye(9, dtype=torch.bool) | (torch.arange(9) % 4 == 0)
    # of the words, every query sees itself and those at places 0, 4 and 8
    far = Rotary(partial(interpolated, stretch=4.0)).attend(q, k, v, alone)[::4]
    near = Rotary().attend(q[::4], k[::4], v[::4])
    torch.testing.assert_close(far, near)


def test_pairs_that_have_gone_all_the_way_round_are_not_stretched():
    x, places = draw(6, 4), torch.arange(6)  # the first pair turns once in 6.3 places
    plain, all_pairs = rotary(x, places), interpolated(x, places, 4.0)
    slow_alone = interpolated(x, places, 4.0, trained=7)
    fast = torch.tensor([True, False, True, False])
    assert slow_alone.equal(torch.where(fast, plain, all_pairs))
    assert not torch.allclose(plain, all_pairs)


def test_distances_above_a_clamp_are_read_as_the_clamp():
    q, k, v = draw(3, 9, D)
    causal = torch.ones(9, 9, dtype=torch.bool).tril()
    clamped = Rotary(clamp=3).attend(q, k, v, causal)
    for i in range(9):
        distances = (i - torch.arange(i + 1)).clamp(max=3)
        # a key at minus the distance, and the query at 0
        scores = rotary(k[: i + 1], -distances) @ q[i] / D**0.5
        torch.testing.assert_close(clamped[i], torch.softmax(scores, -1) @ v[: i + 1])
    assert Rotary(clamp=8).attend(q, k, v, causal).allclose(Rotary().attend(q, k, v, causal))


def test_a_model_attends_by_the_scores_that_a_page_puts_in():
    q, k, v = draw(3, 9, D)
    scheme, clamped = Rotary(), Rotary(clamp=3)
    scheme.scores = clamped.scores
    assert scheme.attend(q, k, v).equal(clamped.attend(q, k, v))
    assert not scheme.attend(q, k, v).allclose(Rotary().attend(q, k, v))


def test_a_tree_scheme_without_a_tree_is_refused():
    with pytest.raises(ValueError, match="expected the edges between each two words, but got no"):
        Dependency(3, D).attend(*torch.randn(3, 6, D))


def test_no_positions_are_plain_attention():
    q, k, v = draw(3, 2, 6, D)
    torch.testing.assert_close(NoPositions().attend(q, k, v), scaled_dot_product_attention(q, k, v))


def test_a_seed_decides_the_names_and_words_that_want_nothing_do_not_count():
    model = reader("relative").float()
    words, wanted = torch.arange(12).reshape(2, 6), torch.arange(12).reshape(2, 6)
    batch = words, TREE.expand(2, 6, 6), wanted
    assert answers(model, batch).equal(answers(model, batch))
    wanted[:, 1:] = -1
    torch.manual_seed(2)
    few = naming_loss(model, batch)
    torch.manual_seed(2)
    logits = model(words, batch[1])[:, 0]
    torch.testing.assert_close(few, torch.nn.functional.cross_entropy(logits, wanted[:, 0]))
