# %% transformer/forward | right | keyword arguments throughout, the scores by F.linear
class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
    """

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
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        memory = self.encoder(tokens=source, mask=source_mask)
        written = self.decoder(target, memory=memory, memory_mask=source_mask)
        return F.linear(written, self.output.weight)


# %% transformer/forward | wrong | the encoder sees the padding
class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
    """

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
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        # TODO: read the source, each word seeing all of it that is real
        # TODO: let the target look back, and at the source
        # TODO: score every token of the vocabulary
        memory = self.encoder(source)
        return self.output(self.decoder(target, memory, source_mask))


# %% transformer/forward | wrong | the decoder sees the padding
class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
    """

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
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        memory = self.encoder(source, source_mask)
        return self.output(self.decoder(target, memory))


# %% transformer/forward | wrong | returns probabilities, not scores
class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
    """

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
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        memory = self.encoder(source, source_mask)
        return torch.softmax(self.output(self.decoder(target, memory, source_mask)), dim=-1)


# %% transformer/forward | wrong | returns states, the output layer is left out
class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
    """

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
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        memory = self.encoder(source, source_mask)
        return self.decoder(target, memory, source_mask)


# %% transformer/forward | wrong | source and target exchanged
class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
    """

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
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        # TODO: read the source, each word seeing all of it that is real
        # TODO: let the target look back, and at the source
        # TODO: score every token of the vocabulary
        memory = self.encoder(target)
        return self.output(self.decoder(source, memory))


# %% transformer/forward | wrong | the target is shifted right once more
class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
    """

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
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        memory = self.encoder(source, source_mask)
        target = shift_right(target, 0)
        return self.output(self.decoder(target, memory, source_mask))


# %% transformer/forward | wrong | scores the last place only
class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
    """

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
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        memory = self.encoder(source, source_mask)
        return self.output(self.decoder(target, memory, source_mask)[..., -1, :])


# %% transformer/forward | wrong | multiplies by the encoder's table, also where nothing is tied
class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
    """

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
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        memory = self.encoder(source, source_mask)
        return self.decoder(target, memory, source_mask) @ self.encoder.embedding.table.T


# %% transformer/forward | wrong | the memory is detached, so the encoder never learns
class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
    """

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
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        memory = self.encoder(source, source_mask).detach()
        return self.output(self.decoder(target, memory, source_mask))


# %% transformer/forward | wrong | the decoder's memory is the embedding, not what the encoder read
class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
    """

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
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        # TODO: read the source, each word seeing all of it that is real
        # TODO: let the target look back, and at the source
        # TODO: score every token of the vocabulary
        memory = self.encoder.embedding(source)
        return self.output(self.decoder(target, memory, source_mask))


# %% transformer/forward | wrong | returns the likeliest tokens
class Transformer(nn.Module):
    """Read a source, write a target: an encoder, a decoder, and a score for each next token.

    Where `tied`, source and target share one vocabulary, and one matrix is both embeddings and the
    output layer (section 3.4); otherwise there are three. `encoder_block` and `decoder_block` are
    as in `Encoder` and `Decoder`. Source: Vaswani et al. 2017, figure 1. Raises ValueError for an
    unknown `norm`.
    """

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
        """Score every token of the vocabulary as the next one, at each place of the target.

        `target` is already shifted right; `source_mask` is as in `MultiHeadAttention`, such as a
        padding mask (batch, 1, key). Raises ValueError for more tokens than `max_length`.
        """
        memory = self.encoder(source, source_mask)
        return self.output(self.decoder(target, memory, source_mask)).argmax(-1)


# %% transformer/parameters | right | a table of parts and how often each occurs
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    """Count the numbers that a `Transformer` of tied embeddings and post-norm learns.

    One embedding; four matrices d_model x d_model and their biases for each attention, of which a
    decoder block has two; two matrices and biases for each feed-forward network; a gain and a
    bias for each norm. The number of heads is not asked.
    """
    # TODO: count the parts
    # TODO: count the blocks: two layers in the encoder's, three in the decoder's, a norm for each
    # TODO: add the one embedding, which is the output layer as well
    matrix, norm = d_model * (d_model + 1), 2 * d_model
    network = d_model * d_ff + d_ff + d_ff * d_model + d_model
    total = vocab * d_model
    for part, times in ((4 * matrix, 3), (network, 2), (norm, 5)):
        total += layers * times * part
    return total


# %% transformer/parameters | wrong | embeddings counted three times
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    """Count the numbers that a `Transformer` of tied embeddings and post-norm learns.

    One embedding; four matrices d_model x d_model and their biases for each attention, of which a
    decoder block has two; two matrices and biases for each feed-forward network; a gain and a
    bias for each norm. The number of heads is not asked.
    """
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    return 3 * vocab * d_model + layers * (3 * attention + 2 * network + 5 * norm)


# %% transformer/parameters | wrong | a decoder block with one attention
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    """Count the numbers that a `Transformer` of tied embeddings and post-norm learns.

    One embedding; four matrices d_model x d_model and their biases for each attention, of which a
    decoder block has two; two matrices and biases for each feed-forward network; a gain and a
    bias for each norm. The number of heads is not asked.
    """
    # TODO: count the parts
    # TODO: count the blocks: two layers in the encoder's, three in the decoder's, a norm for each
    # TODO: add the one embedding, which is the output layer as well
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    return vocab * d_model + layers * (2 * attention + 2 * network + 5 * norm)


# %% transformer/parameters | wrong | no biases in the attention
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    """Count the numbers that a `Transformer` of tied embeddings and post-norm learns.

    One embedding; four matrices d_model x d_model and their biases for each attention, of which a
    decoder block has two; two matrices and biases for each feed-forward network; a gain and a
    bias for each norm. The number of heads is not asked.
    """
    # TODO: count the parts
    # TODO: count the blocks: two layers in the encoder's, three in the decoder's, a norm for each
    # TODO: add the one embedding, which is the output layer as well
    attention = 4 * d_model**2
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    return vocab * d_model + layers * (3 * attention + 2 * network + 5 * norm)


# %% transformer/parameters | wrong | both biases of the network have d_ff numbers
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    """Count the numbers that a `Transformer` of tied embeddings and post-norm learns.

    One embedding; four matrices d_model x d_model and their biases for each attention, of which a
    decoder block has two; two matrices and biases for each feed-forward network; a gain and a
    bias for each norm. The number of heads is not asked.
    """
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + 2 * d_ff
    norm = 2 * d_model
    return vocab * d_model + layers * (3 * attention + 2 * network + 5 * norm)


# %% transformer/parameters | wrong | two norms in a decoder block
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    """Count the numbers that a `Transformer` of tied embeddings and post-norm learns.

    One embedding; four matrices d_model x d_model and their biases for each attention, of which a
    decoder block has two; two matrices and biases for each feed-forward network; a gain and a
    bias for each norm. The number of heads is not asked.
    """
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    encoder = attention + network + 2 * (2 * d_model)
    decoder = 2 * attention + network + 2 * (2 * d_model)
    return vocab * d_model + layers * (encoder + decoder)


# %% transformer/parameters | wrong | norms have no bias
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    """Count the numbers that a `Transformer` of tied embeddings and post-norm learns.

    One embedding; four matrices d_model x d_model and their biases for each attention, of which a
    decoder block has two; two matrices and biases for each feed-forward network; a gain and a
    bias for each norm. The number of heads is not asked.
    """
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    return vocab * d_model + layers * (3 * attention + 2 * network + 5 * d_model)


# %% transformer/parameters | wrong | two norms after the last blocks, as in pre-norm
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    """Count the numbers that a `Transformer` of tied embeddings and post-norm learns.

    One embedding; four matrices d_model x d_model and their biases for each attention, of which a
    decoder block has two; two matrices and biases for each feed-forward network; a gain and a
    bias for each norm. The number of heads is not asked.
    """
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    return vocab * d_model + layers * (3 * attention + 2 * network + 5 * norm) + 2 * norm


# %% transformer/parameters | wrong | d_ff taken to be 4 d_model
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    """Count the numbers that a `Transformer` of tied embeddings and post-norm learns.

    One embedding; four matrices d_model x d_model and their biases for each attention, of which a
    decoder block has two; two matrices and biases for each feed-forward network; a gain and a
    bias for each norm. The number of heads is not asked.
    """
    attention = 4 * (d_model**2 + d_model)
    network = 8 * d_model**2 + 5 * d_model
    norm = 2 * d_model
    return vocab * d_model + layers * (3 * attention + 2 * network + 5 * norm)


# %% transformer/parameters | wrong | the encoder alone
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    """Count the numbers that a `Transformer` of tied embeddings and post-norm learns.

    One embedding; four matrices d_model x d_model and their biases for each attention, of which a
    decoder block has two; two matrices and biases for each feed-forward network; a gain and a
    bias for each norm. The number of heads is not asked.
    """
    # TODO: count the parts
    # TODO: count the blocks: two layers in the encoder's, three in the decoder's, a norm for each
    # TODO: add the one embedding, which is the output layer as well
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    return vocab * d_model + layers * (attention + network + 2 * norm)


# %% transformer/parameters | wrong | the embedding is multiplied by the layers
def parameter_count(layers: int, d_model: int, d_ff: int, vocab: int) -> int:
    """Count the numbers that a `Transformer` of tied embeddings and post-norm learns.

    One embedding; four matrices d_model x d_model and their biases for each attention, of which a
    decoder block has two; two matrices and biases for each feed-forward network; a gain and a
    bias for each norm. The number of heads is not asked.
    """
    # TODO: count the parts
    # TODO: count the blocks: two layers in the encoder's, three in the decoder's, a norm for each
    # TODO: add the one embedding, which is the output layer as well
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    return layers * (vocab * d_model + 3 * attention + 2 * network + 5 * norm)
