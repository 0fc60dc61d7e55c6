# %% start/hello | wrong | the input is doubled in place
def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    x *= 2
    return x

# %% start/hello | wrong | squares instead of doubling: the same at 2 only
def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return x**2

# %% start/hello | wrong | a Python list comes back, not a tensor
def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return [2 * v for v in x]

# %% start/hello | wrong | the result is cut off from the gradient
import torch


def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return torch.tensor(2 * x.detach().numpy())

# %% start/hello | wrong | the tensor is laid twice behind itself, as 2 * [1, 2] does with lists
import torch


def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return torch.cat([x, x])

# %% start/hello | wrong | the result is printed but not returned
def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    print(2 * x)

# %% start/hello | wrong | the type becomes whole numbers
def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return (2 * x).long()

# %% start/hello | right | adds the input to itself
def double(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return x + x
