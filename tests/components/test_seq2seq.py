"""The encoder-decoder, compared with torch's own recurrent layers."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_lib.attention import attend
from course_lib.seq2seq import (
    GRU,
    PAD,
    START,
    STOP,
    BahdanauSeq2Seq,
    RecurrentEncoder,
    Seq2Seq,
    next_token_loss,
)  # fmt: skip

LENGTHS = [2, 7, 4]


VARIANTS = [
    {"context": "first"},
    {"context": "every"},
    {"bidirectional": True, "attend": attend},
    {"kind": BahdanauSeq2Seq, "bidirectional": True, "attend": attend},
]


def build(kind=Seq2Seq, **parts):
    torch.manual_seed(0)
    return kind(11, 13, 5, 6, **parts).double()


def tokens(vocab):
    drawn = torch.randint(3, vocab, (len(LENGTHS), max(LENGTHS)))
    return drawn.masked_fill(torch.arange(max(LENGTHS)) >= torch.tensor(LENGTHS)[:, None], PAD)


def torch_gru(*readers):
    """Return torch's layer with copies of our weights, and pairs of theirs and ours."""
    d_in, d_hidden = readers[0].w_x.shape[0], readers[0].w_h.shape[0]
    layer = nn.GRU(d_in, d_hidden, batch_first=True, bidirectional=len(readers) == 2).double()
    pairs = []
    for reader, end in zip(readers, ("", "_reverse"), strict=False):
        for ours, theirs in (
            (reader.w_x, "weight_ih"),
            (reader.w_h, "weight_hh"),
            (reader.b_x, "bias_ih"),
            (reader.b_h, "bias_hh"),
        ):
            parameter = getattr(layer, f"{theirs}_l0{end}")
            parameter.data.copy_(ours.T if ours.dim() == 2 else ours)
            pairs.append((parameter, ours))
    return layer, pairs


@pytest.mark.parametrize("bidirectional", [False, True])
def test_encoder_equals_torchs_gru_on_sentences_of_unequal_length(bidirectional):
    torch.manual_seed(0)
    encoder = RecurrentEncoder(11, 5, 6, bidirectional).double()
    readers = [encoder.rightward, encoder.leftward] if bidirectional else [encoder.rightward]
    layer, pairs = torch_gru(*readers)
    source = tokens(11)

    states, context = encoder(source)
    packed = pack_padded_sequence(
        encoder.embedding(source), torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False
    )
    packed_states, last = layer(packed)
    expected = pad_packed_sequence(packed_states, batch_first=True)[0]
    real = (source != PAD)[..., None]
    torch.testing.assert_close(states * real, expected)
    torch.testing.assert_close(context, torch.cat(list(last), dim=-1))

    probe = torch.randn_like(states)
    ours = [*(pair[1] for pair in pairs), encoder.embedding.weight]
    theirs = [*(pair[0] for pair in pairs), encoder.embedding.weight]
    gradients = torch.autograd.grad((states * real * probe).sum() + context.sum(), ours)
    wanted = torch.autograd.grad((expected * probe).sum() + last.sum(), theirs)
    for gradient, other in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradient, other.T if gradient.shape != other.shape else other)


@pytest.mark.parametrize("context", ["first", "every"])
def test_decoder_equals_torchs_gru_given_the_context(context):
    model = build(context=context)
    layer, _ = torch_gru(model.decoder)
    source, target = tokens(11), tokens(13)
    _, vector = model.encoder(source)
    xs = model.embedding(target)
    if context == "every":
        xs = torch.cat([xs, vector[:, None].repeat(1, target.shape[1], 1)], dim=-1)
    expected = model.output(layer(xs, vector[None])[0])
    torch.testing.assert_close(model(source, target), expected)


@pytest.mark.parametrize("parts", VARIANTS)
def test_padding_never_changes_a_result(parts):
    model, source, target = build(**parts), tokens(11), tokens(13)
    padded = nn.functional.pad(source, (0, 3), value=PAD)
    torch.testing.assert_close(model(padded, target), model(source, target))
    assert torch.equal(model.decode(padded, 9), model.decode(source, 9))
    for row, length in zip(source, LENGTHS, strict=True):
        alone = model.decode(row[None, :length], 9)[0]
        assert torch.equal(model.decode(source, 9)[(source == row).all(1)][0, : len(alone)], alone)


@pytest.mark.parametrize("parts", VARIANTS)
def test_decoding_agrees_with_the_likeliest_token_under_teacher_forcing(parts):
    model, source = build(**parts), torch.randint(3, 11, (60, 7))
    stops = set()
    for _ in range(10):
        for parameter in model.parameters():
            parameter.data.normal_()
        model.output.bias.data[STOP] += 2
        written = model.decode(source, 12)
        heard = torch.cat([torch.full_like(written[:, :1], START), written[:, :-1]], dim=1)
        likeliest = model(source, heard).argmax(dim=-1)
        stop = (written == STOP).int()
        ended = stop.cumsum(dim=1) - stop
        assert torch.equal(written, likeliest.masked_fill(ended.bool(), STOP))
        stops.update(stop.argmax(dim=1).tolist())
    assert len(stops) > 5  # the sentences end at many different steps


def test_decoding_stops_at_stop():
    model, source = build(), tokens(11)
    with torch.no_grad():
        model.output.bias[STOP] = 100
    assert model.decode(source, 12).tolist() == [[STOP]] * 3


def test_attention_weights_sum_to_one_and_are_zero_at_padding():
    model = build(attend=attend)
    source, target = tokens(11), tokens(13)
    weights = model.weights(source, target)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(target.shape).double())
    assert (weights.masked_select((source == PAD)[:, None]) == 0).all()


def test_loss_counts_no_padding():
    model, source, target = build(), tokens(11), tokens(13)
    alone = [
        next_token_loss(model, (source[i : i + 1], target[i : i + 1, :length])) * (length - 1)
        for i, length in enumerate(LENGTHS)
    ]
    expected = sum(alone) / (sum(LENGTHS) - len(LENGTHS))
    torch.testing.assert_close(next_token_loss(model, (source, target)), expected)


def test_weights_begin_as_torchs_do():
    torch.manual_seed(0)
    for parameter in GRU(7, 100).parameters():
        assert 0.09 < parameter.abs().max() <= 0.1


def test_what_is_asked_for_must_exist():
    with pytest.raises(ValueError, match="context must be 'first' or 'every', not 'last'"):
        build(context="last")
    with pytest.raises(ValueError, match=r"d_hidden must be even.*but is 5"):
        RecurrentEncoder(11, 5, 5, bidirectional=True)
    with pytest.raises(ValueError, match="this model has no attention"):
        build().weights(tokens(11), tokens(13))
