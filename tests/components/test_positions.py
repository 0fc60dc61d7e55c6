import math

import pytest
import torch

from course_lib.attention import dot_scores
from course_lib.positions import (
    LearnedPositions,
    alibi,
    relative_attention,
    relative_index,
    rotary,
    rotary_attention,
    shift_matrix,
    sinusoidal,
    tree_distance,
)
from course_lib.self_attention import scaled_dot_product_attention


def draw(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("offset", [-7, 0, 1, 30])
def test_one_rotation_shifts_every_position_alike(offset):
    table, shift = sinusoidal(60, 16), shift_matrix(offset, 16)
    here = torch.arange(7, 30)
    torch.testing.assert_close(table[here] @ shift, table[here + offset], atol=1e-5, rtol=0)
    torch.testing.assert_close(shift @ shift.mT, torch.eye(16))


def test_late_learned_positions_get_no_gradient_from_short_sentences():
    layer = LearnedPositions(9, 4)
    layer(draw(3, 5, 4)).sum().backward()
    assert (layer.table.grad[:5] == 3).all()
    assert (layer.table.grad[5:] == 0).all()


def test_distances_past_the_largest_share_one_index():
    assert relative_index(3, 5, 2).tolist() == [[2, 3, 4, 4, 4], [1, 2, 3, 4, 4], [0, 1, 2, 3, 4]]


def test_relative_attention_without_distance_vectors_is_plain_attention():
    q, k, v = draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 6)
    mask = torch.arange(5) < torch.tensor([[0], [2], [5]])
    ours = relative_attention(q, k, v, 0 * draw(7, 4), 0 * draw(7, 6), mask)
    torch.testing.assert_close(ours, scaled_dot_product_attention(q, k, v, mask))


def test_tree_distance_counts_the_edges_of_a_path():
    heads = torch.tensor([1, 3, 1, -1, 3])
    from_the_first = [0, 1, 2, 2, 3]
    assert tree_distance(heads)[0].tolist() == from_the_first
    assert tree_distance(torch.arange(-1, 5))[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_rotary_scores_depend_on_the_distance_alone():
    q, k, places = draw(2, 5, 6), draw(2, 5, 6).flip(0), torch.arange(5)

    def scores(first):
        return dot_scores(rotary(q, first + places), rotary(k, first + places))

    torch.testing.assert_close(scores(100), scores(0))
    assert not torch.allclose(dot_scores(rotary(q, places + 1), rotary(k, places)), scores(0))


def test_rotary_turns_and_neither_stretches_nor_moves_position_zero():
    x = draw(2, 5, 6)
    turned = rotary(x, torch.arange(5))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert turned[:, 0].equal(x[:, 0])
    # the first pair of columns turns by one radian a position, against the clock
    point = rotary(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.tensor([1]))
    torch.testing.assert_close(point, torch.tensor([[math.cos(1), 0, math.sin(1), 0]]))


def test_rotary_angles_stay_exact_in_half_precision():
    # half precision itself cannot tell position 4001 from 4000
    x, places = torch.ones(2, 8), torch.tensor([4000, 4001])
    ours = rotary(x.bfloat16(), places)
    torch.testing.assert_close(ours.float(), rotary(x, places), atol=0.02, rtol=0)


def test_alibi_takes_few_queries_as_the_last_ones():
    assert alibi(3, 7, 4).equal(alibi(7, 7, 4)[:, -3:])
    assert alibi(1, 3, 8)[0].tolist() == [[-1.0, -0.5, 0.0]]


def test_positions_are_made_on_the_device_of_their_inputs():
    device = "meta"
    x, table = torch.empty(2, 5, 4, device=device), torch.empty(3, 4, device=device)
    assert rotary(x, torch.arange(5, device=device)).device.type == device
    assert relative_attention(x, x, x, table, table).device.type == device
    for make, sizes in (
        (sinusoidal, (5, 4)),
        (shift_matrix, (5, 4)),
        (relative_index, (5, 5, 2)),
        (alibi, (5, 5, 4)),
    ):
        assert make(*sizes, device=torch.device(device)).device.type == device


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sinusoidal(3, 7), "d_model must be even, not 7"),
        (lambda: shift_matrix(3, 7), "d_model must be even, not 7"),
        (lambda: rotary(draw(3, 7), torch.arange(3)), "needs an even number, not 7"),
        (lambda: LearnedPositions(4, 2)(draw(5, 2)), "at most 4 tokens, .* but got 5: cut the"),
        (
            lambda: relative_attention(*[draw(3, 2)] * 3, draw(4, 2), draw(4, 2)),
            "same odd number of rows, 2 max_distance [+] 1, not 4 and 4",
        ),
        (lambda: rotary_attention(draw(3, 2), *[draw(2, 2)] * 2), "but 3 are more than 2"),
        (lambda: alibi(3, 3, 6), "heads must be a power of two, .* not 6"),
        (lambda: alibi(3, 3, 0), "heads must be a power of two, .* not 0"),
        (lambda: tree_distance(torch.tensor([-1, 0, -1])), "one root, .* these heads have 2"),
        (lambda: tree_distance(torch.tensor([0, 0])), "one root, .* these heads have 0"),
        (lambda: tree_distance(torch.tensor([-1, 2, 1])), r"no cycles, but tokens \[1, 2\]"),
    ],
)
def test_what_has_no_positions_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
