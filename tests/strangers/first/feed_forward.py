# %% feed_forward/position_wise | right | where instead of relu, and explicit sums for the biases
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every word through the same small network: max(0, x W_1 + b_1) W_2 + b_2.

    No word meets another here. Source: Vaswani et al. 2017, eq. 2, where d_ff = 4 d_model.
    """
    hidden = torch.matmul(x, w_1).add(b_1)
    hidden = torch.where(hidden > 0, hidden, torch.zeros_like(hidden))
    return torch.matmul(hidden, w_2).add(b_2)


# %% feed_forward/position_wise | wrong | no relu
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every word through the same small network: max(0, x W_1 + b_1) W_2 + b_2.

    No word meets another here. Source: Vaswani et al. 2017, eq. 2, where d_ff = 4 d_model.
    """
    return (x @ w_1 + b_1) @ w_2 + b_2


# %% feed_forward/position_wise | wrong | relu at the end too
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every word through the same small network: max(0, x W_1 + b_1) W_2 + b_2.

    No word meets another here. Source: Vaswani et al. 2017, eq. 2, where d_ff = 4 d_model.
    """
    return torch.relu(torch.relu(x @ w_1 + b_1) @ w_2 + b_2)


# %% feed_forward/position_wise | wrong | relu before the bias is added
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every word through the same small network: max(0, x W_1 + b_1) W_2 + b_2.

    No word meets another here. Source: Vaswani et al. 2017, eq. 2, where d_ff = 4 d_model.
    """
    return (torch.relu(x @ w_1) + b_1) @ w_2 + b_2


# %% feed_forward/position_wise | wrong | torch.max over the tensor: the largest entry alone is left
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every word through the same small network: max(0, x W_1 + b_1) W_2 + b_2.

    No word meets another here. Source: Vaswani et al. 2017, eq. 2, where d_ff = 4 d_model.
    """
    h = x @ w_1 + b_1
    h = torch.max(torch.tensor(0.0), h.max())
    return h * w_2.sum(0) + b_2


# %% feed_forward/position_wise | wrong | a GELU instead of max
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every word through the same small network: max(0, x W_1 + b_1) W_2 + b_2.

    No word meets another here. Source: Vaswani et al. 2017, eq. 2, where d_ff = 4 d_model.
    """
    # TODO: widen each word, and cut off what is negative
    # TODO: bring it back to the size of a word
    return nn.functional.gelu(x @ w_1 + b_1) @ w_2 + b_2


# %% feed_forward/position_wise | wrong | adds x at the end, a residual that is not asked
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every word through the same small network: max(0, x W_1 + b_1) W_2 + b_2.

    No word meets another here. Source: Vaswani et al. 2017, eq. 2, where d_ff = 4 d_model.
    """
    return x + torch.relu(x @ w_1 + b_1) @ w_2 + b_2


# %% feed_forward/position_wise | wrong | cuts off what is positive
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every word through the same small network: max(0, x W_1 + b_1) W_2 + b_2.

    No word meets another here. Source: Vaswani et al. 2017, eq. 2, where d_ff = 4 d_model.
    """
    return torch.clamp(x @ w_1 + b_1, max=0) @ w_2 + b_2


# %% feed_forward/position_wise | wrong | forgets the second bias
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every word through the same small network: max(0, x W_1 + b_1) W_2 + b_2.

    No word meets another here. Source: Vaswani et al. 2017, eq. 2, where d_ff = 4 d_model.
    """
    return torch.relu(x @ w_1 + b_1) @ w_2


# %% feed_forward/position_wise | wrong | nn.Linear made anew, with random matrices of its own
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every word through the same small network: max(0, x W_1 + b_1) W_2 + b_2.

    No word meets another here. Source: Vaswani et al. 2017, eq. 2, where d_ff = 4 d_model.
    """
    # TODO: widen each word, and cut off what is negative
    # TODO: bring it back to the size of a word
    d_model, d_ff = w_1.shape
    net = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
    return net.to(x)(x)


# %% feed_forward/minimal_block | right | the four parts by name, and a mask from a comparison of places
class MinimalBlock(nn.Module):
    """The four necessities of a self-attention block, and nothing else.

    Position representations, self-attention, masking, nonlinearity: with p the positions,
    y = feed_forward(attention(x + p, causal mask)). One head, and neither residual connections
    nor norms. The positions are added inside, to the block's own input; a stack of blocks adds
    them at each level. `positions(n, d_model)` and `attention(d_model, d_k, d_v)` make its parts.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        positions: Callable[[int, int], Tensor] = sinusoidal,
        attention: Callable[[int, int, int], nn.Module] = SelfAttention,
    ):
        super().__init__()
        self.positions = positions
        self.attention = attention(d_model, d_model, d_model)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Let each word look at itself and at those before it, then think about what it saw."""
        n, d_model = x.shape[-2:]
        place = torch.arange(n, device=x.device)
        placed = x + self.positions(n, d_model).to(x)
        seen = self.attention(placed, place.unsqueeze(0) <= place.unsqueeze(1))
        return self.feed_forward(seen)


# %% feed_forward/minimal_block | wrong | no mask
class MinimalBlock(nn.Module):
    """The four necessities of a self-attention block, and nothing else.

    Position representations, self-attention, masking, nonlinearity: with p the positions,
    y = feed_forward(attention(x + p, causal mask)). One head, and neither residual connections
    nor norms. The positions are added inside, to the block's own input; a stack of blocks adds
    them at each level. `positions(n, d_model)` and `attention(d_model, d_k, d_v)` make its parts.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        positions: Callable[[int, int], Tensor] = sinusoidal,
        attention: Callable[[int, int, int], nn.Module] = SelfAttention,
    ):
        super().__init__()
        self.positions = positions
        self.attention = attention(d_model, d_model, d_model)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Let each word look at itself and at those before it, then think about what it saw."""
        x = x + self.positions(x.shape[-2], x.shape[-1])
        return self.feed_forward(self.attention(x))


# %% feed_forward/minimal_block | wrong | positions forgotten
class MinimalBlock(nn.Module):
    """The four necessities of a self-attention block, and nothing else.

    Position representations, self-attention, masking, nonlinearity: with p the positions,
    y = feed_forward(attention(x + p, causal mask)). One head, and neither residual connections
    nor norms. The positions are added inside, to the block's own input; a stack of blocks adds
    them at each level. `positions(n, d_model)` and `attention(d_model, d_k, d_v)` make its parts.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        positions: Callable[[int, int], Tensor] = sinusoidal,
        attention: Callable[[int, int, int], nn.Module] = SelfAttention,
    ):
        super().__init__()
        self.positions = positions
        self.attention = attention(d_model, d_model, d_model)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Let each word look at itself and at those before it, then think about what it saw."""
        return self.feed_forward(self.attention(x, causal_mask(x.shape[-2])))


# %% feed_forward/minimal_block | wrong | feed-forward before attention
class MinimalBlock(nn.Module):
    """The four necessities of a self-attention block, and nothing else.

    Position representations, self-attention, masking, nonlinearity: with p the positions,
    y = feed_forward(attention(x + p, causal mask)). One head, and neither residual connections
    nor norms. The positions are added inside, to the block's own input; a stack of blocks adds
    them at each level. `positions(n, d_model)` and `attention(d_model, d_k, d_v)` make its parts.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        positions: Callable[[int, int], Tensor] = sinusoidal,
        attention: Callable[[int, int, int], nn.Module] = SelfAttention,
    ):
        super().__init__()
        self.positions = positions
        self.attention = attention(d_model, d_model, d_model)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Let each word look at itself and at those before it, then think about what it saw."""
        x = x + self.positions(*x.shape[-2:])
        return self.attention(self.feed_forward(x), causal_mask(x.shape[-2]))


# %% feed_forward/minimal_block | wrong | adds residual connections
class MinimalBlock(nn.Module):
    """The four necessities of a self-attention block, and nothing else.

    Position representations, self-attention, masking, nonlinearity: with p the positions,
    y = feed_forward(attention(x + p, causal mask)). One head, and neither residual connections
    nor norms. The positions are added inside, to the block's own input; a stack of blocks adds
    them at each level. `positions(n, d_model)` and `attention(d_model, d_k, d_v)` make its parts.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        positions: Callable[[int, int], Tensor] = sinusoidal,
        attention: Callable[[int, int, int], nn.Module] = SelfAttention,
    ):
        super().__init__()
        self.positions = positions
        self.attention = attention(d_model, d_model, d_model)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Let each word look at itself and at those before it, then think about what it saw."""
        n = x.shape[-2]
        x = x + self.positions(n, x.shape[-1])
        x = x + self.attention(x, causal_mask(n))
        return x + self.feed_forward(x)


# %% feed_forward/minimal_block | wrong | uses sinusoidal whatever `positions` was given
class MinimalBlock(nn.Module):
    """The four necessities of a self-attention block, and nothing else.

    Position representations, self-attention, masking, nonlinearity: with p the positions,
    y = feed_forward(attention(x + p, causal mask)). One head, and neither residual connections
    nor norms. The positions are added inside, to the block's own input; a stack of blocks adds
    them at each level. `positions(n, d_model)` and `attention(d_model, d_k, d_v)` make its parts.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        positions: Callable[[int, int], Tensor] = sinusoidal,
        attention: Callable[[int, int, int], nn.Module] = SelfAttention,
    ):
        super().__init__()
        self.positions = positions
        self.attention = attention(d_model, d_model, d_model)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Let each word look at itself and at those before it, then think about what it saw."""
        # TODO: tell each word where it stands
        # TODO: let the words look at each other, but not at the future
        # TODO: send what each word has seen through the feed-forward network
        x = x + sinusoidal(x.shape[-2], x.shape[-1])
        return self.feed_forward(self.attention(x, causal_mask(x.shape[-2])))


# %% feed_forward/minimal_block | wrong | positions added after attention
class MinimalBlock(nn.Module):
    """The four necessities of a self-attention block, and nothing else.

    Position representations, self-attention, masking, nonlinearity: with p the positions,
    y = feed_forward(attention(x + p, causal mask)). One head, and neither residual connections
    nor norms. The positions are added inside, to the block's own input; a stack of blocks adds
    them at each level. `positions(n, d_model)` and `attention(d_model, d_k, d_v)` make its parts.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        positions: Callable[[int, int], Tensor] = sinusoidal,
        attention: Callable[[int, int, int], nn.Module] = SelfAttention,
    ):
        super().__init__()
        self.positions = positions
        self.attention = attention(d_model, d_model, d_model)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Let each word look at itself and at those before it, then think about what it saw."""
        seen = self.attention(x, causal_mask(x.shape[-2]))
        return self.feed_forward(seen + self.positions(*x.shape[-2:]))


# %% feed_forward/minimal_block | wrong | the mask is upside down
class MinimalBlock(nn.Module):
    """The four necessities of a self-attention block, and nothing else.

    Position representations, self-attention, masking, nonlinearity: with p the positions,
    y = feed_forward(attention(x + p, causal mask)). One head, and neither residual connections
    nor norms. The positions are added inside, to the block's own input; a stack of blocks adds
    them at each level. `positions(n, d_model)` and `attention(d_model, d_k, d_v)` make its parts.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        positions: Callable[[int, int], Tensor] = sinusoidal,
        attention: Callable[[int, int, int], nn.Module] = SelfAttention,
    ):
        super().__init__()
        self.positions = positions
        self.attention = attention(d_model, d_model, d_model)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Let each word look at itself and at those before it, then think about what it saw."""
        # TODO: tell each word where it stands
        # TODO: let the words look at each other, but not at the future
        # TODO: send what each word has seen through the feed-forward network
        n, d = x.shape[-2:]
        mask = causal_mask(n).T
        return self.feed_forward(self.attention(x + self.positions(n, d), mask))


# %% feed_forward/minimal_block | wrong | the sizes of a batch are mixed up: positions for the first axis
class MinimalBlock(nn.Module):
    """The four necessities of a self-attention block, and nothing else.

    Position representations, self-attention, masking, nonlinearity: with p the positions,
    y = feed_forward(attention(x + p, causal mask)). One head, and neither residual connections
    nor norms. The positions are added inside, to the block's own input; a stack of blocks adds
    them at each level. `positions(n, d_model)` and `attention(d_model, d_k, d_v)` make its parts.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        positions: Callable[[int, int], Tensor] = sinusoidal,
        attention: Callable[[int, int, int], nn.Module] = SelfAttention,
    ):
        super().__init__()
        self.positions = positions
        self.attention = attention(d_model, d_model, d_model)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Let each word look at itself and at those before it, then think about what it saw."""
        mask = causal_mask(x.shape[-2])
        positions = self.positions(x.shape[0], x.shape[-1])
        return self.feed_forward(self.attention(x + positions, mask))


# %% feed_forward/minimal_block | wrong | positions are multiplied, not added
class MinimalBlock(nn.Module):
    """The four necessities of a self-attention block, and nothing else.

    Position representations, self-attention, masking, nonlinearity: with p the positions,
    y = feed_forward(attention(x + p, causal mask)). One head, and neither residual connections
    nor norms. The positions are added inside, to the block's own input; a stack of blocks adds
    them at each level. `positions(n, d_model)` and `attention(d_model, d_k, d_v)` make its parts.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        positions: Callable[[int, int], Tensor] = sinusoidal,
        attention: Callable[[int, int, int], nn.Module] = SelfAttention,
    ):
        super().__init__()
        self.positions = positions
        self.attention = attention(d_model, d_model, d_model)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Let each word look at itself and at those before it, then think about what it saw."""
        mask = causal_mask(x.shape[-2])
        return self.feed_forward(self.attention(x * self.positions(*x.shape[-2:]), mask))
