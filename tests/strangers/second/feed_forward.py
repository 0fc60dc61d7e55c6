# %% feed_forward/position_wise | wrong | gelu in the place of relu, as GPT has it
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    return torch.nn.functional.gelu(x @ w_1 + b_1) @ w_2 + b_2

# %% feed_forward/position_wise | wrong | relu at the end as well
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    return torch.relu(torch.relu(x @ w_1 + b_1) @ w_2 + b_2)

# %% feed_forward/position_wise | wrong | no bend at all: two linear maps
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    return (x @ w_1 + b_1) @ w_2 + b_2

# %% feed_forward/position_wise | wrong | the first bias is added after the cut
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    return (torch.relu(x @ w_1) + b_1) @ w_2 + b_2

# %% feed_forward/position_wise | wrong | the cut is on the wrong side: clamp(max=0) keeps what is negative
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    hidden = x @ w_1 + b_1
    return hidden.clamp(max=0) @ w_2 + b_2

# %% feed_forward/position_wise | wrong | a residual connection is added
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    return x + torch.relu(x @ w_1 + b_1) @ w_2 + b_2

# %% feed_forward/position_wise | wrong | dropout inside, at random in every call
def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    hidden = torch.nn.functional.dropout(torch.relu(x @ w_1 + b_1), 0.1, training=True)
    return hidden @ w_2 + b_2

# %% feed_forward/position_wise | right | the cut by where, and the biases as a last row under a column of ones
import torch.nn.functional as F


def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    one = F.pad(x, (0, 1), value=1.0)
    wide = one @ torch.cat([w_1, b_1[None]])
    wide = torch.where(wide > 0, wide, torch.zeros_like(wide))
    return F.pad(wide, (0, 1), value=1.0) @ torch.cat([w_2, b_2[None]])

# %% feed_forward/minimal_block | wrong | no mask: the words look at the future
from course_lib.feed_forward import FeedForward


class MinimalBlock(nn.Module):

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
        n, d = x.shape[-2:]
        return self.feed_forward(self.attention(x + self.positions(n, d).to(x)))

# %% feed_forward/minimal_block | wrong | positions are forgotten
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask


class MinimalBlock(nn.Module):

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
        mask = causal_mask(x.shape[-2]).to(x.device)
        return self.feed_forward(self.attention(x, mask))

# %% feed_forward/minimal_block | wrong | the positions come after attention, which does not see them
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask


class MinimalBlock(nn.Module):

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
        n, d = x.shape[-2:]
        seen = self.attention(x, causal_mask(n).to(x.device))
        return self.feed_forward(seen + self.positions(n, d).to(x))

# %% feed_forward/minimal_block | wrong | residual connections around both layers
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask


class MinimalBlock(nn.Module):

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
        n, d = x.shape[-2:]
        x = x + self.positions(n, d).to(x)
        x = x + self.attention(x, causal_mask(n).to(x.device))
        return x + self.feed_forward(x)

# %% feed_forward/minimal_block | wrong | always sinusoids: the `positions` that was given is not used
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask


class MinimalBlock(nn.Module):

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
        n, d = x.shape[-2:]
        x = x + sinusoidal(n, d).to(x)
        return self.feed_forward(self.attention(x, causal_mask(n).to(x.device)))

# %% feed_forward/minimal_block | wrong | the mask is upside down: each word sees itself and what comes after it
from course_lib.feed_forward import FeedForward


class MinimalBlock(nn.Module):

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
        n, d = x.shape[-2:]
        mask = torch.ones(n, n, dtype=torch.bool, device=x.device).triu()
        return self.feed_forward(self.attention(x + self.positions(n, d).to(x), mask))

# %% feed_forward/minimal_block | wrong | n is read off the first axis, which is the batch
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask


class MinimalBlock(nn.Module):

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
        n, d = x.shape[0], x.shape[-1]
        x = x + self.positions(n, d).to(x)
        return self.feed_forward(self.attention(x, causal_mask(n).to(x.device)))

# %% feed_forward/minimal_block | right | the mask by comparing two counts, everything in one chain
from course_lib.feed_forward import FeedForward


class MinimalBlock(nn.Module):

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
        *_, n, d = x.shape
        place = torch.arange(n, device=x.device)
        placed = torch.add(x, self.positions(n, d).to(device=x.device, dtype=x.dtype))
        return self.feed_forward(self.attention(placed, place.unsqueeze(0) <= place.unsqueeze(1)))
