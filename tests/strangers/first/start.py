# %% start/hello | right | adds the input to itself, through numpy habits
def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return twice the input: y = 2 x.

    A new tensor comes back; the input stays as it was.
    """
    # TODO: multiply every element by two, without changing x
    y = x.new_zeros(x.shape)
    y = y + x
    y = y + x
    return y


# %% start/hello | wrong | squares instead of doubling
def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return twice the input: y = 2 x.

    A new tensor comes back; the input stays as it was.
    """
    return x**2


# %% start/hello | wrong | doubles the input in place
def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return twice the input: y = 2 x.

    A new tensor comes back; the input stays as it was.
    """
    x *= 2
    return x


# %% start/hello | wrong | prints the result and returns nothing
def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return twice the input: y = 2 x.

    A new tensor comes back; the input stays as it was.
    """
    print(2 * x)


# %% start/hello | wrong | concatenates the tensor with itself, as lists do
import torch


def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return twice the input: y = 2 x.

    A new tensor comes back; the input stays as it was.
    """
    return torch.cat([x, x], dim=-1)


# %% start/hello | wrong | loops over the first axis, so a tensor without axes fails
import torch


def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return twice the input: y = 2 x.

    A new tensor comes back; the input stays as it was.
    """
    # TODO: multiply every element by two, without changing x
    out = []
    for row in x:
        out.append(2 * row)
    return torch.stack(out)


# %% start/hello | wrong | goes through a Python list and loses type and gradient
import torch


def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return twice the input: y = 2 x.

    A new tensor comes back; the input stays as it was.
    """
    if x.dim() == 0:
        return torch.tensor(2 * x.item())
    doubled = [[2 * e for e in [row]] for row in x.reshape(-1).tolist()]
    return torch.tensor(doubled).reshape(x.shape)


# %% start/hello | wrong | detaches before doubling
def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return twice the input: y = 2 x.

    A new tensor comes back; the input stays as it was.
    """
    return x.detach() * 2


# %% start/hello | wrong | adds two instead of multiplying by two
def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return twice the input: y = 2 x.

    A new tensor comes back; the input stays as it was.
    """
    return x + 2
