"""How fast SmolLM2 writes: from the course's parts, and in engines that others made.

python -m research.benchmarks.generation

The same prompt, the same 64 tokens, always the likeliest next one, on one thread. Time is that of
the processor, the first token included, so that other programs on the machine change little. A
token needs every weight once: reading them is timed in the same rounds, and its share of a token's
time is the share of the limit that a writer reaches.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import gguf
import psutil
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data import store
from course_lib.instruments import results
from course_lib.masks import causal_mask
from course_lib.pretrained import smollm2
from course_lib.pretrained.quantised import row_steps
from course_lib.self_attention import Rule
from research.benchmarks import environments, in_turn

NAME, COMMAND = "generation_speed", "python -m research.benchmarks.generation"
QUESTION, TOKENS, ROUNDS = "Why is the sky blue?", 64, 5
FORMULA = "the course's parts, as formulas"
FUSED = "the same blocks, with fused parts by keyword"
THEIRS = "transformers, float32"
EIGHT = "the course's, fused, matrices of 8 bits"
LLAMA = {  # and the kind of its matrices, with their bits a weight
    "llama.cpp, float32": (gguf.GGMLQuantizationType.F32, 32),
    "llama.cpp, 8 bits": (gguf.GGMLQuantizationType.Q8_0, 8.5),
    "llama.cpp, 4 bits": (gguf.GGMLQuantizationType.Q4_1, 5),
}
PRODUCTS = "a vector times each float32 matrix, and no more"
READING = "all float32 weights, read and added up"
BITS = {EIGHT: 8} | {name: bits for name, (_, bits) in LLAMA.items()}  # others: 32

Writer = Callable[[], list[int]]


def fused_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attend by torch's own function, which is quicker with a batch dimension."""
    q, k, v = (x.unsqueeze(0) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True).squeeze(0)


def fused_norm(x: Tensor, gain: Tensor) -> Tensor:
    """Normalise by torch's own function, with the eps of `add_norm.rms_norm`."""
    return F.rms_norm(x, gain.shape, gain, 1e-5)


class Rotation:
    """Turn as `positions.rotary` does, by sines and cosines that are computed once for a step."""

    def __init__(self, d: int, base: float):
        speeds = base ** (-torch.arange(0, d, 2, dtype=torch.float32) / d)
        angles = torch.arange(smollm2.MAX_LENGTH).unsqueeze(-1) * speeds
        self._table = torch.cat([angles, angles], dim=-1)
        self._places: Tensor | None = None

    def __call__(self, x: Tensor, positions: Tensor, base: float) -> Tensor:
        """Turn queries or keys by their positions, which are one tensor for all blocks."""
        if positions is not self._places:
            angles = self._table[positions]
            self._places, self._cosine, self._sine = positions, angles.cos(), angles.sin()
        left, right = x.chunk(2, dim=-1)
        return torch.addcmul(x * self._cosine, torch.cat([-right, left], dim=-1), self._sine)


class RoomyCache:
    """Keep keys and values as `KeyValueCache` does, in room that doubles when it is full."""

    def __init__(self, attention: Rule):
        self._attention, self._length, self._room = attention, 0, 0

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend from the new tokens to all tokens so far."""
        n = q.shape[-2]
        start, self._length = self._length, self._length + n
        if self._length > self._room:
            self._grow(k, v, start)
        self._keys[..., start : self._length, :] = k
        self._values[..., start : self._length, :] = v
        k, v = (x[..., : self._length, :] for x in (self._keys, self._values))
        return self._attention(q, k, v, causal_mask(n, self._length) if n > 1 else None)

    def _grow(self, k: Tensor, v: Tensor, start: int) -> None:
        self._room = max(2 * self._length, 128)
        keys, values = (x.new_empty(*x.shape[:-2], self._room, x.shape[-1]) for x in (k, v))
        if start:
            keys[..., :start, :] = self._keys[..., :start, :]
            values[..., :start, :] = self._values[..., :start, :]
        self._keys, self._values = keys, values


def fused(model: smollm2.SmolLM2) -> smollm2.SmolLM2:
    """Return the model of the same weights with quicker parts, by the same keywords."""
    turn = Rotation(smollm2.D_MODEL // smollm2.HEADS, smollm2.BASE)
    parts = {"rule": fused_attention, "norm_layer": fused_norm, "turn": turn, "cache": RoomyCache}
    with torch.device("meta"):
        twin = smollm2.SmolLM2(model.tokenizer, **parts)
    twin.load_state_dict(model.state_dict(), assign=True)
    return twin.eval().requires_grad_(requires_grad=False)


def prompt(model: smollm2.SmolLM2) -> list[int]:
    """Return the tokens of the question, as the model answers it."""
    return model.tokenizer.encode(smollm2.turns(QUESTION)).ids


def ours(model: smollm2.SmolLM2) -> Writer:
    """Write with a model of the course's."""
    tokens = prompt(model)
    return lambda: list(model.next_tokens(tokens, TOKENS))


def llama(model: smollm2.SmolLM2) -> Writer:
    """Write with Hugging Face's implementation, which is given the same weights."""
    import transformers

    transformers.logging.set_verbosity_error()
    config = transformers.LlamaConfig(
        vocab_size=smollm2.VOCAB,
        hidden_size=smollm2.D_MODEL,
        num_hidden_layers=smollm2.LAYERS,
        num_attention_heads=smollm2.HEADS,
        num_key_value_heads=smollm2.GROUPS,
        intermediate_size=smollm2.D_FF,
        max_position_embeddings=smollm2.MAX_LENGTH,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": smollm2.BASE},
        tie_word_embeddings=True,
    )
    theirs: Any = transformers.LlamaForCausalLM(config).eval()
    state, weights = model.state_dict(), {"model.embed_tokens": "words.weight"}
    weights |= {"lm_head": "words.weight", "model.norm": "last_norm.gain"}
    for i in range(smollm2.LAYERS):
        layer, block = f"model.layers.{i}", f"blocks.{i}"
        for x in "qkvo":
            name = f"{block}.attention.sublayer.attention.w_{x}.weight"
            weights[f"{layer}.self_attn.{x}_proj"] = name
        for number, name in ((1, "gate"), (2, "down"), (3, "up")):
            weights[f"{layer}.mlp.{name}_proj"] = f"{block}.feed_forward.sublayer.w_{number}.weight"
        weights[f"{layer}.input_layernorm"] = f"{block}.attention.gain"
        weights[f"{layer}.post_attention_layernorm"] = f"{block}.feed_forward.gain"
    theirs.load_state_dict({f"{a}.weight": state[b] for a, b in weights.items()}, strict=True)
    tokens = torch.tensor([prompt(model)])
    settings = {"max_new_tokens": TOKENS, "do_sample": False, "use_cache": True}
    stop = {"eos_token_id": smollm2.STOP, "pad_token_id": smollm2.STOP}

    def write() -> list[int]:
        mask = torch.ones_like(tokens)
        with torch.inference_mode():
            written = theirs.generate(tokens, attention_mask=mask, **settings, **stop)
        return written[0, tokens.shape[-1] :].tolist()

    return write


class RowsOfEightBits(nn.Module):
    """A linear layer without a bias in whole numbers of 8 bits, with a step for each row.

    What comes in is rounded too, with a step for each token.
    """

    def __init__(self, weight: Tensor):
        super().__init__()
        steps, numbers = self._rounded(weight)
        self._steps, self._numbers = steps.T, numbers.T

    def forward(self, x: Tensor) -> Tensor:
        """Multiply each token by the matrix."""
        steps, numbers = self._rounded(x.reshape(-1, x.shape[-1]))
        products = torch._int_mm(numbers, self._numbers)  # pyright: ignore[reportPrivateImportUsage]
        return (products * (steps * self._steps)).reshape(*x.shape[:-1], -1)

    @staticmethod
    def _rounded(rows: Tensor) -> tuple[Tensor, Tensor]:
        steps = row_steps(rows)
        return steps, (rows / steps).round().to(torch.int8)


def in_eight_bits(model: smollm2.SmolLM2) -> smollm2.SmolLM2:
    """Return the fused model with all its matrices in 8 bits; its text may differ."""
    twin = fused(model)
    for module in [*twin.modules()]:
        for name, layer in module.named_children():
            if isinstance(layer, nn.Linear):
                setattr(module, name, RowsOfEightBits(layer.weight))
    vars(twin)["scores"] = RowsOfEightBits(twin.words.weight)
    return twin


def matrices(model: smollm2.SmolLM2) -> list[Tensor]:
    """Return the matrices that each token meets, all but all of the weights."""
    return [x for x in model.parameters() if x.dim() == 2]


def reading(model: smollm2.SmolLM2) -> Writer:
    """Read all matrices once a token, and write nothing."""
    return lambda: [len([x.sum() for x in matrices(model)]) for _ in range(TOKENS)]


def products(model: smollm2.SmolLM2) -> Writer:
    """Multiply a vector by each matrix once a token, by torch's own product, and write nothing."""
    pairs = [(torch.ones(1, x.shape[1]), x) for x in matrices(model)]
    return lambda: [len([F.linear(*pair) for pair in pairs]) for _ in range(TOKENS)]


def llama_file(path: Path, kind: gguf.GGMLQuantizationType) -> None:
    """Write the model's file with its matrices in another kind of numbers."""
    theirs = gguf.GGUFReader(store.unpacked("smollm2", smollm2.MEMBER))
    writer = gguf.GGUFWriter(path, "llama")
    for field in theirs.fields.values():
        if not field.name.startswith(("GGUF.", "general.architecture", "general.file_type")):
            of = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=of)
    for x in theirs.tensors:
        numbers = gguf.quants.dequantize(x.data, x.tensor_type)
        as_kind = kind if numbers.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(x.name, gguf.quants.quantize(numbers, as_kind), raw_dtype=as_kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def llama_cpp(model: smollm2.SmolLM2, file: Path) -> Writer:
    """Write with llama.cpp, which computes with the weights of a file as they are."""
    import xllamacpp  # pyright: ignore[reportMissingImports]

    settings = xllamacpp.CommonParams()
    settings.model.path = str(file)
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.n_ctx, settings.n_parallel, settings.verbosity = 256, 1, -1
    theirs = xllamacpp.Server(settings)
    asked = {"prompt": prompt(model), "max_tokens": TOKENS, "temperature": 0.0}
    asked |= {"cache_prompt": False, "ignore_eos": True}

    def write() -> list[int]:
        text = theirs.handle_completions(asked)["choices"][0]["text"]
        return model.tokenizer.encode(text).ids

    return write


def benchmark(writers: dict[str, Writer]) -> dict:
    """Return each writer's tokens a second of the processor, all rounds, and its share."""
    seconds = in_turn.seconds(writers, ROUNDS)
    rounds = {name: [round(TOKENS / x, 2) for x in seconds[name]] for name in writers}
    of_limit = {
        name: statistics.median(
            BITS.get(name, 32) / 32 * read / own
            for read, own in zip(seconds[READING], seconds[name], strict=True)
        )
        for name in writers
    }
    return {"rounds": rounds, "of the limit": of_limit}


def table(figures: dict) -> str:
    """Return a table: of each processor tokens a second, and the share of the limit."""
    columns = {}
    for processor, own in figures.items():
        columns[processor] = {
            "tokens a second": {
                name: f"{statistics.median(x):.1f} ({min(x):.1f} to {max(x):.1f})"
                for name, x in own["rounds"].items()
            },
            "of the limit": {name: f"{100 * x:.0f} %" for name, x in own["of the limit"].items()},
        }
    return in_turn.table("SmolLM2, on one thread", columns)


def main() -> None:
    """Print the table and keep the figures in research/results/generation_speed.json."""
    torch.set_num_threads(1)
    start, load = time.perf_counter(), psutil.getloadavg()[0]
    model = smollm2.load()
    writers, versions = {FORMULA: ours(model), FUSED: ours(fused(model))}, {}
    try:
        writers[THEIRS] = llama(model)
    except ImportError as error:
        print(f"{THEIRS} is left out: {error}", file=sys.stderr)
    else:
        versions["transformers"] = metadata.version("transformers")
    written = {tuple(write()) for write in writers.values()}
    assert len(written) == 1, "they write different texts"
    [exact], same = written, {}
    writers[EIGHT] = ours(in_eight_bits(model))
    with tempfile.TemporaryDirectory() as folder:
        if environments.importable(environments.WRITER):
            print("llama.cpp is left out: pip could not install it", file=sys.stderr)
        else:
            for name, (kind, _) in LLAMA.items():
                llama_file(file := Path(folder, f"{kind.name}.gguf"), kind)
                writers[name] = llama_cpp(model, file)
            versions["xllamacpp"] = metadata.version("xllamacpp")
        for name in [*writers][3:]:
            pairs = enumerate(zip(writers[name](), exact, strict=False))
            same[name] = next((i for i, (a, b) in pairs if a != b), TOKENS)
        figures = benchmark(writers | {PRODUCTS: products(model), READING: reading(model)})
    figures |= {"packages": versions, "load": load, "tokens": TOKENS, "same tokens first": same}
    taken = time.perf_counter() - start
    in_turn.keep(NAME, figures, command=COMMAND, seconds=taken)
    print(table(results.load(NAME)["figures"]), same, sep="\n")


if __name__ == "__main__":
    main()
