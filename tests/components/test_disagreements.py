"""Where the lectures disagree or slip, the law that holds. The lessons show both versions."""

import math

import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from course_lib.add_norm import PostNorm, PreNorm, layer_norm
from course_lib.attention import attend, dot_scores, softmax
from course_lib.before_attention import layers_needed, receptive_field, unroll
from course_lib.efficient.cost import operations
from course_lib.feed_forward import FeedForward, MinimalBlock, feed_forward
from course_lib.instruments import training
from course_lib.instruments.deep_stack import Stack, bare
from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention, score_variance, split_heads
from course_lib.positions import shift_matrix, sinusoidal
from course_lib.scaling import estimate_parameters, training_flops
from course_lib.self_attention import SelfAttention, scaled_dot_product_attention
from course_lib.seq2seq import BahdanauSeq2Seq, Seq2Seq
from course_lib.transformer import cross_attention


def draw(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def multiply_adds(compute):
    with FlopCounterMode(display=False) as counter:
        compute()
    return counter.get_total_flops() // 2


def prefers_itself(scores):
    """Return the share of tokens that causally score themselves highest, as L3 means it."""
    scores = scores.masked_fill(~causal_mask(scores.shape[-1]), -torch.inf)
    own = scores.diagonal(dim1=-2, dim2=-1)
    return (own >= scores.amax(-1) - 1e-9).double().mean()


def test_d01_a_word_that_may_not_see_itself_leaves_the_first_one_nothing_to_see():
    scores = draw(4, 4)
    hides_itself = causal_mask(4) & ~torch.eye(4, dtype=torch.bool)
    theirs = torch.softmax(scores.masked_fill(~hides_itself, -torch.inf), dim=-1)
    assert theirs[0].isnan().all()
    assert not softmax(scores, hides_itself)[0].any()
    sees_itself = torch.softmax(scores.masked_fill(~causal_mask(4), -torch.inf), dim=-1)
    torch.testing.assert_close(softmax(scores, causal_mask(4)), sees_itself)


def printed_layer_norm(x, mean, divide):
    centred = x - mean(x, -1, keepdim=True)
    sigma = (centred**2).mean(-1, keepdim=True).sqrt()
    return centred / divide(sigma)


@pytest.mark.parametrize(
    ("mean", "divide"),
    [
        (torch.sum, lambda sigma: sigma.sqrt() + 1e-5),
        (torch.mean, lambda sigma: sigma.sqrt() + 1e-5),
        (torch.mean, lambda sigma: sigma),
        (torch.sum, lambda sigma: (sigma + 1e-5).sqrt()),
    ],
    ids="L1 L2 L3 L4".split(),
)
def test_d02_d03_no_printed_layer_norm_is_torchs_and_ours_is(mean, divide):
    x = draw(50, 4) / 100  # a variance near eps shows where eps stands
    torchs = F.layer_norm(x, (4,))
    ours = layer_norm(x, torch.ones(4).double(), torch.zeros(4).double())
    printed = printed_layer_norm(x, mean, divide)
    torch.testing.assert_close(ours, torchs)
    assert (printed - torchs).abs().mean() > 0.01


def test_d04_the_waves_start_at_2_pi_and_end_before_10000_times_that():
    n, d = 2, 16
    sine, cosine = sinusoidal(n, d).double()[1].view(-1, 2).unbind(-1)
    periods = 2 * math.pi / torch.atan2(sine, cosine)
    # the lectures count the pairs from 1 in the exponent, the paper from 0
    theirs = 2 * math.pi * 10000 ** (2 * torch.arange(1, d // 2 + 1, dtype=torch.float64) / d)
    torch.testing.assert_close(periods[0].item(), 2 * math.pi)
    assert theirs[0] > 3 * 2 * math.pi, "the lectures' fastest wave is slower"
    assert periods[-1] < 10000 * 2 * math.pi, "the paper's slowest wave falls short"
    torch.testing.assert_close(theirs[-1].item(), 10000 * 2 * math.pi)
    torch.testing.assert_close(periods[1:], theirs[:-1], rtol=1e-5, atol=0)


def test_d05_twelve_needs_a_network_four_times_as_wide():
    layers, d = 96, 12288
    four, one = (estimate_parameters(layers, d, d, d_ff) for d_ff in (4 * d, d))
    assert four == 12 * layers * d**2
    assert one == 6 * layers * d**2


def test_d06_the_number_of_tokens_is_in_no_parameters_shape():
    n, d_model, d_v = 7, 12, 5
    one_head, x = SelfAttention(d_model, 3, d_v).double(), draw(n, d_model)
    for layer in (one_head, MultiHeadAttention(d_model, 3), MinimalBlock(d_model, 48)):
        assert all(n not in parameter.shape for parameter in layer.parameters())
    assert one_head.w_q.shape == (d_model, 3)
    assert one_head(x).shape == (n, d_v)
    assert one_head(x[:4]).shape == (4, d_v)


def test_d09_a_word_attends_most_to_itself_only_without_projections_and_at_equal_length():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(500, 8, 16, generator=generator, dtype=torch.float64)
    x[:, 0] *= 5  # a long vector draws the others' attention
    unit = F.normalize(x, dim=-1)
    assert prefers_itself(dot_scores(unit, unit)) == 1
    assert prefers_itself(dot_scores(x, x)) < 1
    chance = (1 / torch.arange(1, 9)).mean()
    projected = [torch.randn(2, 16, 16, generator=generator).double() for _ in range(20)]
    shares = [prefers_itself(dot_scores(unit @ w_q, unit @ w_k)) for w_q, w_k in projected]
    assert max(shares) < 0.6
    assert torch.stack(shares).mean() == pytest.approx(chance.item(), abs=0.05)


def test_d10_scores_have_variance_1_when_divided_by_the_root_of_a_heads_size_not_a_words():
    d_model, heads = 64, 8
    d_k = d_model // heads
    q, k = (split_heads(x, heads) for x in draw(2, 400, d_model))
    scores = dot_scores(q, k)
    assert (scores / d_k**0.5).var().item() == pytest.approx(score_variance(d_k, True), rel=0.05)
    assert (scores / d_model**0.5).var().item() == pytest.approx(d_k / d_model, rel=0.05)


def test_d11_weights_hidden_before_the_softmax_sum_to_one_and_those_hidden_after_do_not():
    scores, mask = draw(5, 5), causal_mask(5)
    after = softmax(scores) * mask
    assert (after.sum(-1)[:-1] < 1).all()
    torch.testing.assert_close(softmax(scores, mask).sum(-1), torch.ones(5).double())
    torch.testing.assert_close(softmax(scores, mask), after / after.sum(-1, keepdim=True))


def test_attention_alone_is_linear_for_a_lone_token_and_odd_but_not_linear_for_several():
    torch.manual_seed(0)
    stack = torch.nn.Sequential(*[SelfAttention(8, 8, 8) for _ in range(3)]).double()
    x, y = draw(2, 5, 8)

    def bend(x, y):
        return (stack((x + y) / 2) - (stack(x) + stack(y)) / 2).abs().max()

    assert bend(x[:1], y[:1]) < 1e-12 < 0.01 < bend(x, y)
    torch.testing.assert_close(stack(-x), -stack(x))


def test_networks_hurry_the_collapse_or_slow_it_by_the_size_of_their_first_weights():
    x = 8 * F.normalize(draw(8, 64), dim=-1)

    def log_spread(gain):
        """Return the spread after three layers, with networks unless the gain is 0."""
        with training.seeded(0):
            found = []
            for _ in range(5):
                states = x
                for _ in range(3):
                    states = SelfAttention(64, 64, 64).double()(states)
                    network = FeedForward(64, 256).double()
                    network.w_1.data *= gain
                    states = network(states) if gain else states
                apart = states - states.mean(-2, keepdim=True)
                found.append((apart.norm() / states.norm()).log())
            return torch.stack(found).mean()

    assert log_spread(1) < log_spread(0) - 2
    assert log_spread(3) > log_spread(0) + 2


def test_d13_the_papers_norm_stands_after_the_sum_and_that_of_much_code_before_the_layer():
    x = draw(5, 8)
    post, pre = (wrapper(torch.tanh, 8).double()(x) for wrapper in (PostNorm, PreNorm))
    torch.testing.assert_close(post, F.layer_norm(x + torch.tanh(x), (8,)))
    torch.testing.assert_close(pre, x + torch.tanh(F.layer_norm(x, (8,))))
    assert not torch.allclose(post, pre, atol=0.1)


def test_d14_stacked_windows_reach_further_than_length_over_width():
    n, width = 31, 5
    assert receptive_field(layers_needed(n - 1, width), width) >= n
    assert receptive_field(layers_needed(n - 1, width) - 1, width) < n
    assert receptive_field(n // width, width) < n, "the lectures' n / window layers fall short"


def test_d07_a_training_cost_is_a_count_which_time_does_not_change():
    model = torch.nn.Linear(8, 5, bias=False)
    x = torch.randn(3, 8, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        model(x).sum().backward()
    # forward once, backward twice as much: 6 N D, however long it took
    assert counter.get_total_flops() == training_flops(model.weight.numel(), tokens=3)


def test_d08_words_as_rows_and_as_columns_are_transposes_and_a_mixture_is_neither():
    n, d, d_k = 5, 12, 12
    x, w_q, w_k, w_v = draw(n, d), *draw(3, d, d_k) / d**0.5
    rows = softmax((x @ w_q) @ (x @ w_k).T) @ (x @ w_v)
    q, k, v = (w.T @ x.T for w in (w_q, w_k, w_v))  # words are columns
    torch.testing.assert_close(v @ softmax(q.T @ k).T, rows.T)
    mixed = softmax((x @ w_q.T) @ (x @ w_k.T).T) @ (x @ w_v.T)
    assert (mixed - rows).abs().max() > 0.1, "one letter for a matrix and its transpose"
    with pytest.raises(RuntimeError):
        draw(d_k, d) @ rows  # Y[...], though words are rows


def test_d12_heads_leave_the_multiply_adds_as_they_are_and_multiply_the_scores():
    n, d_model, scores = 6, 16, []

    def attention(q, k, v, mask):
        scores.append(dot_scores(q, k).numel())
        return scaled_dot_product_attention(q, k, v, mask)

    for heads in (1, 2, 8):
        layer, x = MultiHeadAttention(d_model, heads), torch.randn(n, d_model)
        count = multiply_adds(lambda layer=layer, x=x: layer(x, x, x))
        assert count == 4 * n * d_model**2 + 2 * n**2 * d_model
        layer.rule = attention
        layer(x, x, x)
    assert scores == [n**2, 2 * n**2, 8 * n**2]


def test_d17_a_sum_with_the_wrong_index_is_right_for_one_hot_targets_alone():
    log_probabilities = draw(5).log_softmax(-1)
    one_hot = torch.eye(5, dtype=torch.float64)[2]
    smooth = 0.9 * one_hot + 0.1 / 5

    def printed(target):
        return -(target * log_probabilities[2]).sum()

    torch.testing.assert_close(printed(one_hot), F.cross_entropy(log_probabilities, one_hot))
    torch.testing.assert_close(printed(smooth), printed(one_hot), msg="it smooths nothing")
    defined = F.cross_entropy(log_probabilities, smooth)
    torch.testing.assert_close(-(smooth @ log_probabilities), defined)
    assert (printed(smooth) - defined).abs() > 0.01


def test_d18_a_wider_bare_layer_could_do_what_a_sum_does_but_does_not_learn_it():
    x, w_1, w_2 = draw(5, 8), draw(8, 32), draw(32, 8)
    same, none = torch.eye(8).double(), torch.zeros(48).double()
    wide_1, wide_2 = torch.cat([w_1, same, -same], dim=1), torch.cat([w_2, same, -same])
    wide_bare = feed_forward(x, wide_1, none, wide_2, none[:8])
    torch.testing.assert_close(wide_bare, x + feed_forward(x, w_1, none[:32], w_2, none[:8]))

    def lowest_gradient(wrap):
        with training.seeded(0):
            model, tokens = Stack(11, 32, 12, 3, wrap).double(), torch.randint(11, (4, 9))
        streams = model.streams(tokens[:, :-1])
        loss = F.cross_entropy(model.scores(streams[-1]).flatten(0, 1), tokens[:, 1:].flatten())
        return torch.autograd.grad(loss, streams[0])[0].norm()

    assert lowest_gradient(bare) < 1e-12 < 1e-4 < lowest_gradient(PreNorm)


def test_d01_a_word_that_is_hidden_from_itself_is_known_by_its_question_all_the_same():
    x, layer = draw(5, 8), SelfAttention(8, 8, 8).double()
    hides_itself = causal_mask(5) & ~torch.eye(5, dtype=torch.bool)
    moved = torch.cat([x[:3], -x[3:4], x[4:]])
    changed = (layer(moved, hides_itself) - layer(x, hides_itself)).abs().amax(-1) > 1e-9
    assert changed.tolist() == [False, False, False, True, True]


def test_d15_cross_attention_has_a_row_a_target_word_and_a_column_a_source_word():
    z, h, w_q, w_k, w_v = draw(4, 8), draw(6, 8), *draw(3, 8, 5)
    weights = softmax((z @ w_q) @ (h @ w_k).T / 5**0.5)
    assert weights.shape == (4, 6)
    torch.testing.assert_close(weights @ (h @ w_v), cross_attention(z, h, w_q, w_k, w_v))


def test_d16_the_decoders_view_of_the_source_moves_with_the_source():
    z, h, matrices = draw(4, 8), draw(6, 8), draw(3, 8, 5)
    found = cross_attention(z, h, *matrices)
    assert not torch.allclose(cross_attention(z, -h, *matrices), found, atol=0.1)
    itself = SelfAttention(8, 5, 5).double()
    itself.w_q.data, itself.w_k.data, itself.w_v.data = matrices
    torch.testing.assert_close(cross_attention(z, z, *matrices), itself(z))
    assert not torch.allclose(itself(z), found, atol=0.1), "it knows nothing of the source"


def test_d19_positions_added_after_the_matrices_make_every_place_prefer_itself():
    n, d = 9, 8
    p, x = sinusoidal(n, d).double(), draw(n, d)
    w_q, w_k = draw(2, d, d)
    to_the_left = shift_matrix(-1, d).double()

    def theirs(x, w_q, w_k):
        return dot_scores(x @ w_q + p, x @ w_k + p)

    def ours(x, w_q, w_k):
        return dot_scores((x + p) @ w_q, (x + p) @ w_k)

    same, no_words = torch.eye(d).double(), torch.zeros(n, d).double()
    torch.testing.assert_close(theirs(x, same, same), ours(x, same, same))
    assert not torch.allclose(theirs(x, w_q, w_k), ours(x, w_q, w_k), atol=0.1)
    for matrix in (same, w_q, to_the_left):
        assert theirs(no_words, matrix, same).argmax(-1).equal(torch.arange(n))
    assert ours(no_words, to_the_left, same).argmax(-1)[1:].equal(torch.arange(n - 1))


@pytest.mark.parametrize(("decoder", "waits"), [(Seq2Seq, False), (BahdanauSeq2Seq, True)])
def test_d20_only_the_older_decoders_queries_wait_for_the_contexts_before_them(decoder, waits):
    def queries(look):
        seen = []

        def recorded(queries, states, mask):
            seen.append(queries)
            return look(queries, states, mask)

        torch.manual_seed(0)
        model = decoder(9, 9, 4, 6, attend=recorded)
        model(torch.randint(3, 9, (2, 5)), torch.randint(3, 9, (2, 4)))
        return torch.cat(seen, dim=1)

    def blind(queries, states, mask):
        contexts, weights = attend(queries, states, mask)
        return torch.zeros_like(contexts), weights

    assert torch.equal(queries(attend), queries(blind)) != waits


@pytest.mark.parametrize(("n", "d"), [(6, 12), (12, 12), (40, 12)])
def test_an_attention_layer_costs_2_plus_n_over_d_rnn_layers(n, d):
    x, (w_x, w_h), layer = draw(1, n, d).float(), draw(2, d, d).float(), MultiHeadAttention(d, 3)
    attention = multiply_adds(lambda: layer(x, x, x))
    rnn = multiply_adds(lambda: unroll(x, torch.zeros(1, d), w_x, w_h, torch.zeros(d)))
    assert attention == 4 * n * d**2 + 2 * n**2 * d
    assert attention / rnn == pytest.approx(2 + n / d)
    # table 1 of Vaswani et al. 2017 has the mixing alone for attention, both matrices for the RNN
    assert attention - 4 * n * d**2 == operations("attention", n, d)
    assert rnn == operations("rnn", n, d)
    assert (operations("attention", n, d) < rnn) == (n < d)
