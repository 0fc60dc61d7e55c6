# %% transformer/forward | wrong | the decoder sees the source's padding
from typing import Literal
from course_lib.decoder import Decoder, DecoderBlock
from course_lib.encoder import Encoder, EncoderBlock


class Transformer(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        tied: bool = True,
        *,
        encoder_block: Callable[..., nn.Module] = EncoderBlock,
        decoder_block: Callable[..., nn.Module] = DecoderBlock,
    ):
        super().__init__()
        sizes = (vocab, layers, d_model, heads, d_ff, max_length, norm)
        self.encoder = Encoder(*sizes, block=encoder_block)
        self.decoder = Decoder(*sizes, block=decoder_block)
        self.output = nn.Linear(d_model, vocab, bias=False)
        if tied:
            self.decoder.embedding.table = self.encoder.embedding.table
            self.output.weight = self.encoder.embedding.table

    def forward(
        self,
        source: Int[Tensor, "*batch key"],
        target: Int[Tensor, "*batch query"],
        source_mask: Bool[Tensor, "*#batch 1 #key"] | None = None,
    ) -> Float[Tensor, "*batch query vocab"]:
        memory = self.encoder(source, source_mask)
        return self.output(self.decoder(target, memory))

# %% transformer/forward | wrong | the encoder sees its own padding
from typing import Literal
from course_lib.decoder import Decoder, DecoderBlock
from course_lib.encoder import Encoder, EncoderBlock


class Transformer(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        tied: bool = True,
        *,
        encoder_block: Callable[..., nn.Module] = EncoderBlock,
        decoder_block: Callable[..., nn.Module] = DecoderBlock,
    ):
        super().__init__()
        sizes = (vocab, layers, d_model, heads, d_ff, max_length, norm)
        self.encoder = Encoder(*sizes, block=encoder_block)
        self.decoder = Decoder(*sizes, block=decoder_block)
        self.output = nn.Linear(d_model, vocab, bias=False)
        if tied:
            self.decoder.embedding.table = self.encoder.embedding.table
            self.output.weight = self.encoder.embedding.table

    def forward(
        self,
        source: Int[Tensor, "*batch key"],
        target: Int[Tensor, "*batch query"],
        source_mask: Bool[Tensor, "*#batch 1 #key"] | None = None,
    ) -> Float[Tensor, "*batch query vocab"]:
        memory = self.encoder(source)
        return self.output(self.decoder(target, memory, source_mask))

# %% transformer/forward | wrong | the target is shifted right once more
from typing import Literal
from course_lib.decoder import Decoder, DecoderBlock
from course_lib.encoder import Encoder, EncoderBlock
from course_lib.masks import shift_right


class Transformer(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        tied: bool = True,
        *,
        encoder_block: Callable[..., nn.Module] = EncoderBlock,
        decoder_block: Callable[..., nn.Module] = DecoderBlock,
    ):
        super().__init__()
        sizes = (vocab, layers, d_model, heads, d_ff, max_length, norm)
        self.encoder = Encoder(*sizes, block=encoder_block)
        self.decoder = Decoder(*sizes, block=decoder_block)
        self.output = nn.Linear(d_model, vocab, bias=False)
        if tied:
            self.decoder.embedding.table = self.encoder.embedding.table
            self.output.weight = self.encoder.embedding.table

    def forward(
        self,
        source: Int[Tensor, "*batch key"],
        target: Int[Tensor, "*batch query"],
        source_mask: Bool[Tensor, "*#batch 1 #key"] | None = None,
    ) -> Float[Tensor, "*batch query vocab"]:
        memory = self.encoder(source, source_mask)
        target = shift_right(target, 0)
        return self.output(self.decoder(target, memory, source_mask))

# %% transformer/forward | wrong | scores for the last place only
from typing import Literal
from course_lib.decoder import Decoder, DecoderBlock
from course_lib.encoder import Encoder, EncoderBlock


class Transformer(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        tied: bool = True,
        *,
        encoder_block: Callable[..., nn.Module] = EncoderBlock,
        decoder_block: Callable[..., nn.Module] = DecoderBlock,
    ):
        super().__init__()
        sizes = (vocab, layers, d_model, heads, d_ff, max_length, norm)
        self.encoder = Encoder(*sizes, block=encoder_block)
        self.decoder = Decoder(*sizes, block=decoder_block)
        self.output = nn.Linear(d_model, vocab, bias=False)
        if tied:
            self.decoder.embedding.table = self.encoder.embedding.table
            self.output.weight = self.encoder.embedding.table

    def forward(
        self,
        source: Int[Tensor, "*batch key"],
        target: Int[Tensor, "*batch query"],
        source_mask: Bool[Tensor, "*#batch 1 #key"] | None = None,
    ) -> Float[Tensor, "*batch query vocab"]:
        memory = self.encoder(source, source_mask)
        return self.output(self.decoder(target, memory, source_mask)[..., -1:, :])

# %% transformer/forward | wrong | the decoder's embedding is the output layer even when nothing is tied
from typing import Literal
from course_lib.decoder import Decoder, DecoderBlock
from course_lib.encoder import Encoder, EncoderBlock


class Transformer(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        tied: bool = True,
        *,
        encoder_block: Callable[..., nn.Module] = EncoderBlock,
        decoder_block: Callable[..., nn.Module] = DecoderBlock,
    ):
        super().__init__()
        sizes = (vocab, layers, d_model, heads, d_ff, max_length, norm)
        self.encoder = Encoder(*sizes, block=encoder_block)
        self.decoder = Decoder(*sizes, block=decoder_block)
        self.output = nn.Linear(d_model, vocab, bias=False)
        if tied:
            self.decoder.embedding.table = self.encoder.embedding.table
            self.output.weight = self.encoder.embedding.table

    def forward(
        self,
        source: Int[Tensor, "*batch key"],
        target: Int[Tensor, "*batch query"],
        source_mask: Bool[Tensor, "*#batch 1 #key"] | None = None,
    ) -> Float[Tensor, "*batch query vocab"]:
        memory = self.encoder(source, source_mask)
        return self.decoder(target, memory, source_mask) @ self.decoder.embedding.table.T

# %% transformer/forward | wrong | source and target are exchanged
from typing import Literal
from course_lib.decoder import Decoder, DecoderBlock
from course_lib.encoder import Encoder, EncoderBlock


class Transformer(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        tied: bool = True,
        *,
        encoder_block: Callable[..., nn.Module] = EncoderBlock,
        decoder_block: Callable[..., nn.Module] = DecoderBlock,
    ):
        super().__init__()
        sizes = (vocab, layers, d_model, heads, d_ff, max_length, norm)
        self.encoder = Encoder(*sizes, block=encoder_block)
        self.decoder = Decoder(*sizes, block=decoder_block)
        self.output = nn.Linear(d_model, vocab, bias=False)
        if tied:
            self.decoder.embedding.table = self.encoder.embedding.table
            self.output.weight = self.encoder.embedding.table

    def forward(
        self,
        source: Int[Tensor, "*batch key"],
        target: Int[Tensor, "*batch query"],
        source_mask: Bool[Tensor, "*#batch 1 #key"] | None = None,
    ) -> Float[Tensor, "*batch query vocab"]:
        memory = self.encoder(target, source_mask)
        return self.output(self.decoder(source, memory, source_mask))

# %% transformer/forward | wrong | the encoder is not trained: its states are detached
from typing import Literal
from course_lib.decoder import Decoder, DecoderBlock
from course_lib.encoder import Encoder, EncoderBlock


class Transformer(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        tied: bool = True,
        *,
        encoder_block: Callable[..., nn.Module] = EncoderBlock,
        decoder_block: Callable[..., nn.Module] = DecoderBlock,
    ):
        super().__init__()
        sizes = (vocab, layers, d_model, heads, d_ff, max_length, norm)
        self.encoder = Encoder(*sizes, block=encoder_block)
        self.decoder = Decoder(*sizes, block=decoder_block)
        self.output = nn.Linear(d_model, vocab, bias=False)
        if tied:
            self.decoder.embedding.table = self.encoder.embedding.table
            self.output.weight = self.encoder.embedding.table

    def forward(
        self,
        source: Int[Tensor, "*batch key"],
        target: Int[Tensor, "*batch query"],
        source_mask: Bool[Tensor, "*#batch 1 #key"] | None = None,
    ) -> Float[Tensor, "*batch query vocab"]:
        memory = self.encoder(source, source_mask).detach()
        return self.output(self.decoder(target, memory, source_mask))

# %% transformer/forward | right | the output layer by F.linear, and named arguments
from typing import Literal
from course_lib.decoder import Decoder, DecoderBlock
from course_lib.encoder import Encoder, EncoderBlock


class Transformer(nn.Module):

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        norm: Literal["post", "pre"] = "post",
        tied: bool = True,
        *,
        encoder_block: Callable[..., nn.Module] = EncoderBlock,
        decoder_block: Callable[..., nn.Module] = DecoderBlock,
    ):
        super().__init__()
        sizes = (vocab, layers, d_model, heads, d_ff, max_length, norm)
        self.encoder = Encoder(*sizes, block=encoder_block)
        self.decoder = Decoder(*sizes, block=decoder_block)
        self.output = nn.Linear(d_model, vocab, bias=False)
        if tied:
            self.decoder.embedding.table = self.encoder.embedding.table
            self.output.weight = self.encoder.embedding.table

    def forward(
        self,
        source: Int[Tensor, "*batch key"],
        target: Int[Tensor, "*batch query"],
        source_mask: Bool[Tensor, "*#batch 1 #key"] | None = None,
    ) -> Float[Tensor, "*batch query vocab"]:
        read = self.encoder(source, mask=source_mask)
        written = self.decoder(target, read, memory_mask=source_mask)
        return torch.nn.functional.linear(written, self.output.weight)

# %% transformer/parameters | wrong | the output layer is counted beside the embedding
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    block = 3 * attention + 2 * network + 5 * norm
    return layers * block + 2 * vocab * d_model

# %% transformer/parameters | wrong | a last norm for each stack, as in pre-norm
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    block = 3 * attention + 2 * network + 5 * norm
    return layers * block + 2 * norm + vocab * d_model

# %% transformer/parameters | wrong | attention without biases, as in the paper
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    attention = 4 * d_model**2
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    return layers * (3 * attention + 2 * network + 5 * norm) + vocab * d_model

# %% transformer/parameters | wrong | a norm has d_model numbers only
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    return layers * (3 * attention + 2 * network + 5 * d_model) + vocab * d_model

# %% transformer/parameters | wrong | two norms in the decoder's block too
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    return layers * (3 * attention + 2 * network + 4 * norm) + vocab * d_model

# %% transformer/parameters | wrong | the network's second bias is taken to be of d_ff numbers
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    attention = 4 * (d_model**2 + d_model)
    network = 2 * (d_model * d_ff + d_ff)
    norm = 2 * d_model
    return layers * (3 * attention + 2 * network + 5 * norm) + vocab * d_model

# %% transformer/parameters | wrong | d_ff is four times d_model, whatever was asked
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    attention = 4 * (d_model**2 + d_model)
    network = 8 * d_model**2 + 5 * d_model
    norm = 2 * d_model
    return layers * (3 * attention + 2 * network + 5 * norm) + vocab * d_model

# %% transformer/parameters | right | a list of shapes, multiplied and added up
import math


def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    square, wide, high = (d_model, d_model), (d_model, d_ff), (d_ff, d_model)
    attention = [square, (d_model,)] * 4
    network = [wide, (d_ff,), high, (d_model,)]
    norm = [(d_model,), (d_model,)]
    encoder = attention + norm + network + norm
    decoder = attention + norm + attention + norm + network + norm
    shapes = (encoder + decoder) * layers + [(vocab, d_model)]
    return sum(math.prod(shape) for shape in shapes)
