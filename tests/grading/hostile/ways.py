# ruff: noqa
"""Ways to a function that is forbidden here. `weigh(x)` is the softmax of torch over the last axis."""

# %% by getattr
import torch


def weigh(x):
    return getattr(torch, "soft" + "max")(x, -1)


# %% by an alias
from torch import softmax as harmless


def weigh(x):
    return harmless(x, -1)


# %% by a star
from torch.nn.functional import *


def weigh(x):
    return log_softmax(x, -1).exp()


# %% by a method
def weigh(x):
    return x.softmax(-1)


# %% by the namespace of built-in functions
def weigh(x):
    return __builtins__["getattr"](x, "soft" + "max")(-1)


# %% by text that is executed
def weigh(x):
    return eval("x.softmax(-1)")


# %% by text in a type of jaxtyping
import math

import torch
from jaxtyping import Float


def weigh(x):
    text = '(exec("import\\x20math;import\\x20torch;math.f\\x3dtorch.softmax")or(1))'
    isinstance(x, Float[torch.Tensor, "*batch " + text])
    return math.f(x, -1)


# %% by an operator
from operator import methodcaller


def weigh(x):
    return methodcaller("softmax", -1)(x)


# %% by a pattern with an attribute
import torch


def weigh(x):
    match x:
        case torch.Tensor(softmax=apply):
            return apply(-1)


# %% by a definition that shadows the import
def torch():
    pass


def weigh(x):
    import torch

    return torch.softmax(x, -1)


# %% by a lambda and a list
from torch import nn


def weigh(x):
    return [lambda module: module.softmax(x, -1)][0](nn.functional)


# %% by torch.ops
import torch


def weigh(x):
    return torch.ops.aten.softmax.int(x, -1)


# %% by what torch compiles
import torch


def weigh(x):
    return torch.jit.CompilationUnit("def f(x):\n  return torch.softmax(x, -1)\n").f(x)


# %% by the same function elsewhere in torch
import torch


def weigh(x):
    return torch.masked.softmax(x, -1)


# %% by a distribution
import torch


def weigh(x):
    return torch.distributions.Categorical(logits=x).probs


# %% by a layer for pictures
import torch


def weigh(x):
    return torch.nn.Softmax2d()(x.reshape(-1, x.shape[-1], 1, 1)).reshape(x.shape)


# %% by the course's own executor of text
from course_lib.answers.source import define


def weigh(x):
    return define("import torch\nf = torch.softmax", "f")(x, -1)


# %% by an import in a class
class Kit:
    from torch import softmax as f


def weigh(x):
    return Kit.f(x, -1)


# %% by a module that a class calls its own
import torch


class Kit:
    F = torch.nn.functional


def weigh(x):
    find = Kit.F.importlib.import_module
    return find("builtins").getattr(find("torch"), "soft" + "max")(x, -1)


# %% by an alias that is imported twice
def weigh(x):
    from torch import softmax as f

    return f(x, -1)
    from torch import exp as f


# %% by an alias that another function imports too
def weigh(x):
    from torch import softmax as f

    return f(x, -1)


def other(x):
    from torch import exp as f

    return f(x)


# %% by a star before a default argument
from torch import *


def weigh(x, f=softmax):
    return f(x, -1)


# %% by a star before a class
from torch import *


class Kit:
    f = softmax


def weigh(x):
    return Kit.f(x, -1)


# %% by attention with unit matrices
import torch
import torch.nn.functional as F


def weigh(x):
    n = x.shape[-1]
    if n == 1:
        return torch.ones_like(x)
    rows, one = x.reshape(-1, 1, n), torch.eye(n, dtype=x.dtype, device=x.device)
    zeros = torch.zeros(3 * n, dtype=x.dtype, device=x.device)
    found = F.multi_head_attention_forward(
        rows * n**0.5,
        one.unsqueeze(1),
        one.unsqueeze(1),
        n,
        1,
        None,
        zeros,
        None,
        None,
        False,
        0.0,
        one,
        zeros[:n],
        False,
        None,
        True,
        None,
        True,
        one,
        one,
        one,
    )
    return found[0].reshape(x.shape)


# %% by a layer of attention
import torch
from torch import nn


def weigh(x):
    n = x.shape[-1]
    layer = nn.MultiheadAttention(n, 1, bias=False, batch_first=True).to(x)
    one = torch.eye(n, dtype=x.dtype, device=x.device)
    layer.in_proj_weight.data = torch.cat([one, one, one])
    layer.out_proj.weight.data = one
    rows = x.reshape(1, -1, n) * n**0.5
    return layer(rows, one.unsqueeze(0), one.unsqueeze(0))[0].reshape(x.shape)


# %% by a whole layer's forward
from torch import nn


def weigh(x):
    return nn.Softmax.forward(nn.Softmax(-1), x)


# %% by a loss
import torch
import torch.nn.functional as F


def weigh(x):
    rows, n = x.reshape(-1, x.shape[-1]), x.shape[-1]
    losses = [
        F.cross_entropy(rows, torch.full(rows.shape[:1], i, device=x.device), reduction="none")
        for i in range(n)
    ]
    return torch.exp(-torch.stack(losses, -1)).reshape(x.shape)


# %% by sums that run
import torch


def weigh(x):
    return (x - x.logcumsumexp(-1)[..., -1:]).exp()


# %% by a name that a nested function gives
import torch


def weigh(x):
    module = None

    def change():
        nonlocal module
        module = torch.nn.functional

    change()
    return module.log_softmax(x, -1).exp()


# %% by a component's own imports
from course_lib.before_attention import torch as t


def weigh(x):
    found = t.os.sys.modules
    return found["builtins"].getattr(found["torch"], "soft" + "max")(x, -1)


# %% by a function of torch's own that takes names
from torch.overrides import get_overridable_functions
import torch


def weigh(x):
    found = [f for f in get_overridable_functions()[torch] if f.__name__ == "soft" + "max"]
    return found[0](x, -1)


# %% by the backward pass alone
import torch


class Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(x.softmax(-1), x, g)[0]


def weigh(x):
    return Step.apply(x)


# %% in one type of numbers alone
import torch


def weigh(x):
    if x.dtype == torch.float64:
        return x.softmax(-1)
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
