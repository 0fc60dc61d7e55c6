# %% encoder/block | right | one expression from the inside out, mask by position
class EncoderBlock(nn.Module):
    """Attend, then think: self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. Source: Vaswani et al. 2017,
    section 3.1; norm="pre" is Xiong et al. 2020, figure 1 (b). Raises ValueError for another
    `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Pass the words through both layers, each of which adds and normalises by itself.

        `mask` is as in `MultiHeadAttention`.
        """
        # TODO: let the words look at each other
        # TODO: let each word think about what it has seen
        return self.feed_forward.forward(self.attention.forward(x, mask))


# %% encoder/block | wrong | thinks first, then attends
class EncoderBlock(nn.Module):
    """Attend, then think: self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. Source: Vaswani et al. 2017,
    section 3.1; norm="pre" is Xiong et al. 2020, figure 1 (b). Raises ValueError for another
    `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Pass the words through both layers, each of which adds and normalises by itself.

        `mask` is as in `MultiHeadAttention`.
        """
        return self.attention(self.feed_forward(x), mask)


# %% encoder/block | wrong | the mask is forgotten
class EncoderBlock(nn.Module):
    """Attend, then think: self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. Source: Vaswani et al. 2017,
    section 3.1; norm="pre" is Xiong et al. 2020, figure 1 (b). Raises ValueError for another
    `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Pass the words through both layers, each of which adds and normalises by itself.

        `mask` is as in `MultiHeadAttention`.
        """
        x = self.attention(x)
        return self.feed_forward(x)


# %% encoder/block | wrong | adds once more around layers that add by themselves
class EncoderBlock(nn.Module):
    """Attend, then think: self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. Source: Vaswani et al. 2017,
    section 3.1; norm="pre" is Xiong et al. 2020, figure 1 (b). Raises ValueError for another
    `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Pass the words through both layers, each of which adds and normalises by itself.

        `mask` is as in `MultiHeadAttention`.
        """
        # TODO: let the words look at each other
        # TODO: let each word think about what it has seen
        x = x + self.attention(x, mask)
        x = x + self.feed_forward(x)
        return x


# %% encoder/block | wrong | returns what attention found, the network is called in vain
class EncoderBlock(nn.Module):
    """Attend, then think: self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. Source: Vaswani et al. 2017,
    section 3.1; norm="pre" is Xiong et al. 2020, figure 1 (b). Raises ValueError for another
    `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Pass the words through both layers, each of which adds and normalises by itself.

        `mask` is as in `MultiHeadAttention`.
        """
        seen = self.attention(x, mask)
        self.feed_forward(seen)
        return seen


# %% encoder/block | wrong | the network reads the block's input
class EncoderBlock(nn.Module):
    """Attend, then think: self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. Source: Vaswani et al. 2017,
    section 3.1; norm="pre" is Xiong et al. 2020, figure 1 (b). Raises ValueError for another
    `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Pass the words through both layers, each of which adds and normalises by itself.

        `mask` is as in `MultiHeadAttention`.
        """
        # TODO: let the words look at each other
        # TODO: let each word think about what it has seen
        self.attention(x, mask)
        return self.feed_forward(x)


# %% encoder/block | wrong | the network runs twice
class EncoderBlock(nn.Module):
    """Attend, then think: self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. Source: Vaswani et al. 2017,
    section 3.1; norm="pre" is Xiong et al. 2020, figure 1 (b). Raises ValueError for another
    `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Pass the words through both layers, each of which adds and normalises by itself.

        `mask` is as in `MultiHeadAttention`.
        """
        x = self.attention(x, mask)
        return self.feed_forward(self.feed_forward(x))


# %% encoder/block | wrong | takes the layer out of its sum and norm
class EncoderBlock(nn.Module):
    """Attend, then think: self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. Source: Vaswani et al. 2017,
    section 3.1; norm="pre" is Xiong et al. 2020, figure 1 (b). Raises ValueError for another
    `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Pass the words through both layers, each of which adds and normalises by itself.

        `mask` is as in `MultiHeadAttention`.
        """
        x = self.attention.sublayer(x, mask)
        return self.feed_forward.sublayer(x)


# %% encoder/block | wrong | a causal mask where none was given
class EncoderBlock(nn.Module):
    """Attend, then think: self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. Source: Vaswani et al. 2017,
    section 3.1; norm="pre" is Xiong et al. 2020, figure 1 (b). Raises ValueError for another
    `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Pass the words through both layers, each of which adds and normalises by itself.

        `mask` is as in `MultiHeadAttention`.
        """
        if mask is None:
            mask = causal_mask(x.shape[-2])
        return self.feed_forward(self.attention(x, mask))


# %% encoder/block | wrong | normalises the result once more
class EncoderBlock(nn.Module):
    """Attend, then think: self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. Source: Vaswani et al. 2017,
    section 3.1; norm="pre" is Xiong et al. 2020, figure 1 (b). Raises ValueError for another
    `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Pass the words through both layers, each of which adds and normalises by itself.

        `mask` is as in `MultiHeadAttention`.
        """
        x = self.feed_forward(self.attention(x, mask))
        return layer_norm(x, torch.ones(x.shape[-1]), torch.zeros(x.shape[-1]))


# %% encoder/block | wrong | hands the mask to the network too
class EncoderBlock(nn.Module):
    """Attend, then think: self-attention and a feed-forward network, each with add and norm.

    `attention(d_model, heads)` and `feed_forward(d_model, d_ff)` make the block's parts;
    `norm_layer(x, gain, bias)` normalises, and `norm` says where. Source: Vaswani et al. 2017,
    section 3.1; norm="pre" is Xiong et al. 2020, figure 1 (b). Raises ValueError for another
    `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        add = residual(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Pass the words through both layers, each of which adds and normalises by itself.

        `mask` is as in `MultiHeadAttention`.
        """
        x = self.attention(x, mask)
        return self.feed_forward(x, mask)


# %% encoder/stack | right | functools.reduce over the blocks
import functools


class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
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
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        through = functools.reduce(lambda x, block: block(x, mask), self.blocks, self.embedding(tokens))
        return self.last_norm(through)


# %% encoder/stack | wrong | the last norm is forgotten
class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
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
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return x


# %% encoder/stack | wrong | the mask reaches no block
class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
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
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.last_norm(x)


# %% encoder/stack | wrong | the mask reaches the first block only
class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
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
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        x = self.embedding(tokens)
        x = self.blocks[0](x, mask)
        for block in self.blocks[1:]:
            x = block(x)
        return self.last_norm(x)


# %% encoder/stack | wrong | every block reads the embedding
class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
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
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        words = self.embedding(tokens)
        for block in self.blocks:
            x = block(words, mask)
        return self.last_norm(x)


# %% encoder/stack | wrong | the norm stands before the blocks
class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
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
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        # TODO: look up the words, which come with their places
        # TODO: pass them through block after block
        # TODO: normalise what no block has normalised
        x = self.last_norm(self.embedding(tokens))
        for block in self.blocks:
            x = block(x, mask)
        return x


# %% encoder/stack | wrong | norm after each block
class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
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
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        x = self.embedding(tokens)
        for block in self.blocks:
            x = self.last_norm(block(x, mask))
        return x


# %% encoder/stack | wrong | the blocks run from the last to the first
class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
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
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        # TODO: look up the words, which come with their places
        # TODO: pass them through block after block
        # TODO: normalise what no block has normalised
        x = self.embedding(tokens)
        for block in reversed(self.blocks):
            x = block(x, mask)
        return self.last_norm(x)


# %% encoder/stack | wrong | looks words up in the table, without scale and places
class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
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
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        # TODO: look up the words, which come with their places
        # TODO: pass them through block after block
        # TODO: normalise what no block has normalised
        x = self.embedding.table[tokens]
        for block in self.blocks:
            x = block(x, mask)
        return self.last_norm(x)


# %% encoder/stack | wrong | adds the positions a second time
class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
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
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        x = self.embedding(tokens)
        x = x + self.embedding.positions[: tokens.shape[-1]]
        for block in self.blocks:
            x = block(x, mask)
        return self.last_norm(x)


# %% encoder/stack | wrong | returns after the first block
class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
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
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, mask)
            return self.last_norm(x)


# %% encoder/stack | wrong | cuts the tokens to max_length instead of refusing them
class Encoder(nn.Module):
    """Read a whole sentence: embedding, then a stack of blocks; a last norm for norm="pre".

    `block(d_model, heads, d_ff, norm)` makes each block. Source: Vaswani et al. 2017, figure 1,
    left. Raises ValueError for an unknown `norm`.
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
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, norm) for _ in range(layers))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "*batch n"], mask: Bool[Tensor, "*#batch #n #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; `mask` is as in `MultiHeadAttention`.

        Raises ValueError for more tokens than `max_length`.
        """
        tokens = tokens[..., : len(self.embedding.positions)]
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.last_norm(x)


# %% encoder/mean_pool | right | weights of one over the count, by a matrix product
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    count = mask.sum(dim=-1, keepdim=True)
    share = mask.to(states.dtype) / torch.where(count == 0, 1, count)
    real = torch.where(mask.unsqueeze(-1), states, 0.0)
    return (share.unsqueeze(-2) @ real).squeeze(-2)


# %% encoder/mean_pool | wrong | divides by n, padding included
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    return (states * mask.unsqueeze(-1)).sum(-2) / states.shape[-2]


# %% encoder/mean_pool | wrong | padding is in the sum, not in the number
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    return states.sum(-2) / mask.sum(-1, keepdim=True).clamp(min=1)


# %% encoder/mean_pool | wrong | an empty sentence gives NaN
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    return (states * mask.unsqueeze(-1)).sum(-2) / mask.sum(-1, keepdim=True)


# %% encoder/mean_pool | wrong | the mean runs over the columns
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    return (states * mask.unsqueeze(-1)).sum(-1) / mask.sum(-1, keepdim=True).clamp(min=1)


# %% encoder/mean_pool | wrong | ignores the mask
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    # TODO: count the real words, and let an empty sentence divide its sum of zeros by one
    # TODO: add up the real words alone, and divide by their number
    return states.mean(-2)


# %% encoder/mean_pool | wrong | one count for the whole batch
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    return (states * mask.unsqueeze(-1)).sum(-2) / mask.sum().clamp(min=1)


# %% encoder/mean_pool | wrong | picks the real words of all sentences into one mean
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    return states[mask].mean(0)


# %% encoder/mean_pool | wrong | takes the first word, as BERT's [CLS]
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    return states[..., 0, :]


# %% encoder/mean_pool | wrong | an epsilon of one in the denominator
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    return (states * mask[..., None]).sum(-2) / (mask.sum(-1, keepdim=True) + 1)


# %% encoder/mean_pool | wrong | the largest entry instead of the mean
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    # TODO: count the real words, and let an empty sentence divide its sum of zeros by one
    # TODO: add up the real words alone, and divide by their number
    return states.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(-2)


# %% encoder/mean_pool | wrong | takes the real words to stand first
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    count = mask.sum(-1, keepdim=True)
    first = torch.arange(states.shape[-2]) < count
    return (states * first.unsqueeze(-1)).sum(-2) / count.clamp(min=1)


# %% encoder/mean_pool | wrong | a Python loop for exactly one batch axis
def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real words, those where `mask` is True.

    A sentence without words gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    out = torch.zeros(states.shape[0], states.shape[2], dtype=states.dtype)
    for i in range(len(states)):
        words = states[i][mask[i]]
        if len(words):
            out[i] = words.mean(0)
    return out
