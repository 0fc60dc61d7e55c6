# %% add_norm/layer_norm | wrong | Bessel's correction: the sum of squares is divided by d - 1
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias

# %% add_norm/layer_norm | wrong | eps is added to the standard deviation, outside of the root
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    mean = x.mean(dim=-1, keepdim=True)
    deviation = x.std(dim=-1, keepdim=True, unbiased=False)
    return gain * (x - mean) / (deviation + eps) + bias

# %% add_norm/layer_norm | wrong | the root is forgotten
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, unbiased=False)
    return gain * (x - mean) / (variance + eps) + bias

# %% add_norm/layer_norm | wrong | each column over the words, as batch norm has it
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    mean = x.mean(dim=0, keepdim=True)
    variance = x.var(dim=0, keepdim=True, unbiased=False)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias

# %% add_norm/layer_norm | wrong | eps is a constant of 1e-5
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(variance + 1e-5) + bias

# %% add_norm/layer_norm | wrong | the gain stretches the bias too
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    return gain * ((x - mean) / torch.sqrt(variance + eps) + bias)

# %% add_norm/layer_norm | wrong | the statistics are taken as constants: no gradient runs through them
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    with torch.no_grad():
        variance, mean = torch.var_mean(x, dim=-1, keepdim=True, unbiased=False)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias

# %% add_norm/layer_norm | right | the mean is removed by a product with a centring matrix
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    d = x.shape[-1]
    centring = torch.eye(d, dtype=x.dtype, device=x.device) - 1 / d
    centred = x @ centring
    size = (centred.unsqueeze(-2) @ centred.unsqueeze(-1)).squeeze(-1) / d
    return torch.addcmul(bias, centred * (size + eps).rsqrt(), gain)

# %% add_norm/rms_norm | wrong | the mean is taken off first: layer norm again
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    x = x - x.mean(dim=-1, keepdim=True)
    return gain * x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps)

# %% add_norm/rms_norm | wrong | the sum of the squares, not their mean
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    return gain * x / torch.sqrt(x.square().sum(dim=-1, keepdim=True) + eps)

# %% add_norm/rms_norm | wrong | eps outside of the root
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    return gain * x / (x.square().mean(dim=-1, keepdim=True).sqrt() + eps)

# %% add_norm/rms_norm | wrong | the square of the mean in the place of the mean of the squares
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    return gain * x / torch.sqrt(x.mean(dim=-1, keepdim=True).square() + eps)

# %% add_norm/rms_norm | wrong | Gemma's gain: 1 + gain
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    return (1 + gain) * x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps)

# %% add_norm/rms_norm | wrong | one size for all words together
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    return gain * x / torch.sqrt(x.square().mean() + eps)

# %% add_norm/rms_norm | wrong | eps is forgotten: a word of zeros is NaN
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    return gain * x / x.square().mean(dim=-1, keepdim=True).sqrt()

# %% add_norm/rms_norm | right | einsum for the squares and a power of minus one half
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    squares = einsum(x, x, "... d, ... d -> ...") / x.shape[-1]
    return einsum(x, gain, (squares + eps).pow(-0.5), "... d, d, ... -> ... d")

# %% add_norm/batch_norm | wrong | padding takes part in the averages
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    if mask is not None and (mask.dtype != torch.bool or mask.shape != x.shape[:2]):
        raise ValueError("mask")
    mean = x.mean(dim=(0, 1))
    variance = (x - mean).square().mean(dim=(0, 1))
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias

# %% add_norm/batch_norm | wrong | padded places become zeros and are still counted
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("mask")
    keep = mask.unsqueeze(-1)
    mean = (x * keep).mean(dim=(0, 1))
    variance = ((x - mean).square() * keep).mean(dim=(0, 1))
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias

# %% add_norm/batch_norm | wrong | over the batch only: each place of the sentence has statistics of its own
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("mask")
    keep = mask.unsqueeze(-1).to(x.dtype)
    count = keep.sum(0).clamp(min=1)
    mean = (x * keep).sum(0) / count
    variance = ((x - mean).square() * keep).sum(0) / count
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias

# %% add_norm/batch_norm | wrong | the variance is divided by the count minus one
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("mask")
    real = x[mask]
    count = max(len(real), 1)
    mean = real.sum(0) / count
    variance = (real - mean).square().sum(0) / max(count - 1, 1)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias

# %% add_norm/batch_norm | wrong | a batch without real words is NaN
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("mask")
    real = x[mask]
    mean = real.mean(0)
    variance = real.var(0, unbiased=False)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias

# %% add_norm/batch_norm | wrong | a mask that is not boolean, or of another shape, is taken as it is
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    if mask is None:
        mask = torch.ones(x.shape[:2], device=x.device)
    keep = mask.to(x.dtype).unsqueeze(-1)
    count = keep.sum().clamp(min=1)
    mean = (x * keep).sum((0, 1)) / count
    variance = ((x - mean).square() * keep).sum((0, 1)) / count
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias

# %% add_norm/batch_norm | wrong | padded words come back as zeros
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("mask")
    real = x[mask]
    count = max(len(real), 1)
    mean = real.sum(0) / count
    variance = (real - mean).square().sum(0) / count
    y = gain * (x - mean) / torch.sqrt(variance + eps) + bias
    return y * mask.unsqueeze(-1)

# %% add_norm/batch_norm | right | the real words are picked out, and gain and statistics become one scale and one shift
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    if mask is None:
        real = x.reshape(-1, x.shape[-1])
    else:
        if mask.dtype is not torch.bool or tuple(mask.shape) != tuple(x.shape[:2]):
            raise ValueError(f"expected a boolean mask {tuple(x.shape[:2])}, not {mask.dtype}")
        real = x[mask]
    share = 1 / max(1, real.shape[0])
    mean = (real * share).sum(dim=0)
    spread = ((real - mean) ** 2 * share).sum(dim=0)
    scale = gain / (spread + eps).sqrt()
    return x * scale + (bias - mean * scale)

# %% add_norm/post_norm | wrong | the norm comes first: this is pre-norm
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PostNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        return x + self.sublayer(self.norm_layer(x, self.gain, self.bias), *args)

# %% add_norm/post_norm | wrong | nothing is added: only what the layer found is normalised
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PostNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        return self.norm_layer(self.sublayer(x, *args), self.gain, self.bias)

# %% add_norm/post_norm | wrong | what the layer found is normalised before it is added
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PostNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        return x + self.norm_layer(self.sublayer(x, *args), self.gain, self.bias)

# %% add_norm/post_norm | wrong | the mask is not handed on
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PostNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        return self.norm_layer(x + self.sublayer(x), self.gain, self.bias)

# %% add_norm/post_norm | wrong | always layer norm, whichever norm was given
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PostNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        return layer_norm(x + self.sublayer(x, *args), self.gain, self.bias)

# %% add_norm/post_norm | wrong | bias and gain change places
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PostNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        return self.norm_layer(x + self.sublayer(x, *args), self.bias, self.gain)

# %% add_norm/post_norm | wrong | the words of the caller are changed in place
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PostNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        x += self.sublayer(x, *args)
        return self.norm_layer(x, self.gain, self.bias)

# %% add_norm/post_norm | right | the sum by torch.add, the sublayer's other words by a lambda
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PostNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        found = (lambda words: self.sublayer(words, *args))(x)
        return self.norm_layer(torch.add(found, x), self.gain, self.bias)

# %% add_norm/pre_norm | wrong | the norm comes last: this is post-norm
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PreNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        return self.norm_layer(x + self.sublayer(x, *args), self.gain, self.bias)

# %% add_norm/pre_norm | wrong | the normalised words are added, so nothing runs through unchanged
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PreNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        x = self.norm_layer(x, self.gain, self.bias)
        return x + self.sublayer(x, *args)

# %% add_norm/pre_norm | wrong | the sublayer's result is normalised, not what it reads
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PreNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        return x + self.norm_layer(self.sublayer(x, *args), self.gain, self.bias)

# %% add_norm/pre_norm | wrong | nothing is added
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PreNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        return self.sublayer(self.norm_layer(x, self.gain, self.bias), *args)

# %% add_norm/pre_norm | wrong | the mask is not handed on
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PreNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        return x + self.sublayer(self.norm_layer(x, self.gain, self.bias))

# %% add_norm/pre_norm | wrong | always layer norm, whichever norm was given
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PreNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        return x + self.sublayer(layer_norm(x, self.gain, self.bias), *args)

# %% add_norm/pre_norm | wrong | the gain is learned nowhere: ones are handed to the norm
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PreNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        ones, zeros = torch.ones_like(self.gain), torch.zeros_like(self.bias)
        return x + self.sublayer(self.norm_layer(x, ones, zeros), *args)

# %% add_norm/pre_norm | right | first the other summand, then x, and the arguments as a list
from collections.abc import Callable
from course_lib.add_norm import layer_norm


class PreNorm(nn.Module):

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        words = [self.norm_layer(x, self.gain, self.bias)]
        words.extend(args)
        step = self.sublayer(*words)
        return step + x

# %% add_norm/erase_direction | wrong | the direction is not brought to length one
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    if not direction.any():
        raise ValueError("zeros")
    return stream - (stream @ direction).unsqueeze(-1) * direction

# %% add_norm/erase_direction | wrong | divided by the length once only
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    if not direction.any():
        raise ValueError("zeros")
    along = (stream @ direction).unsqueeze(-1) / direction.norm()
    return stream - along * direction

# %% add_norm/erase_direction | wrong | a direction of zeros gives NaN
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    u = direction / direction.norm()
    return stream - (stream @ u).unsqueeze(-1) * u

# %% add_norm/erase_direction | wrong | returns the part along the direction, not what is left
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    if not direction.any():
        raise ValueError("zeros")
    u = direction / direction.norm()
    return (stream @ u).unsqueeze(-1) * u

# %% add_norm/erase_direction | wrong | takes the part off twice: a mirror
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    if not direction.any():
        raise ValueError("zeros")
    u = direction / direction.norm()
    return stream - 2 * (stream @ u).unsqueeze(-1) * u

# %% add_norm/erase_direction | wrong | a small number in the denominator, so that zeros pass silently
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    u = direction / (direction.norm() + 1e-8)
    return stream - (stream @ u).unsqueeze(-1) * u

# %% add_norm/erase_direction | wrong | the example has a single word: words of a sentence are not thought of
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    if not direction.any():
        raise ValueError("zeros")
    u = direction / direction.norm()
    return stream - torch.dot(stream, u) * u

# %% add_norm/erase_direction | right | the matrix I - u u^T, with the direction scaled by its largest entry first
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    largest = direction.abs().max()
    if largest == 0:
        raise ValueError("a direction of zeros points nowhere")
    u = direction / largest
    onto = torch.outer(u, u) / u.square().sum()
    return stream @ (torch.eye(len(u), dtype=onto.dtype, device=onto.device) - onto)
