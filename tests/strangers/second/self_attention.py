# %% self_attention/parameter_free | wrong | dim=1 is the keys' axis for one sentence, and the queries' for a batch
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    n = x.shape[-2]
    s = x @ x.transpose(-1, -2)
    if causal:
        s = s + torch.full((n, n), float("-inf"), dtype=x.dtype, device=x.device).triu(1)
    return torch.softmax(s, dim=1) @ x

# %% self_attention/parameter_free | wrong | causal hides the past instead of the future
from course_lib.attention import softmax


def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    n = x.shape[-2]
    mask = torch.ones(n, n, dtype=torch.bool, device=x.device).triu() if causal else None
    return softmax(x @ x.mT, mask) @ x

# %% self_attention/parameter_free | wrong | causal hides the word itself too
from course_lib.attention import softmax


def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    n = x.shape[-2]
    mask = torch.ones(n, n, dtype=torch.bool, device=x.device).tril(-1) if causal else None
    return softmax(x @ x.mT, mask) @ x

# %% self_attention/parameter_free | wrong | always causal: the argument is not looked at
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    n = x.shape[-2]
    scores = x @ x.mT
    future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
    return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ x

# %% self_attention/parameter_free | wrong | the future is cut after the softmax, and rows no longer sum to one
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    weights = torch.softmax(x @ x.mT, dim=-1)
    if causal:
        weights = weights.tril()
    return weights @ x

# %% self_attention/parameter_free | wrong | tril of the scores leaves zeros, which are scores like any other
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    scores = x @ x.mT
    if causal:
        scores = scores.tril()
    return torch.softmax(scores, dim=-1) @ x

# %% self_attention/parameter_free | wrong | X^T X in place of X X^T: columns are compared, words are not
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    n, d = x.shape[-2:]
    scores = x.mT @ x
    if causal:
        keep = torch.ones(d, d, dtype=torch.bool, device=x.device).tril()
        scores = scores.masked_fill(~keep, float("-inf"))
    return x @ torch.softmax(scores, dim=-1).mT

# %% self_attention/parameter_free | right | each word by itself, with the stretch of words that it may see
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    rows = []
    for i in range(x.shape[-2]):
        seen = x[..., : i + 1, :] if causal else x
        likeness = (seen * x[..., i : i + 1, :]).sum(-1, keepdim=True)
        rows.append((torch.softmax(likeness, dim=-2) * seen).sum(-2))
    return torch.stack(rows, dim=-2)

# %% self_attention/project | wrong | returns keys before queries
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    return x @ w_k, x @ w_q, x @ w_v

# %% self_attention/project | wrong | the values are left as the words are
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    return x @ w_q, x @ w_k, x

# %% self_attention/project | wrong | one matrix for queries and keys
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    return x @ w_q, x @ w_q, x @ w_v

# %% self_attention/project | wrong | the keys come transposed, ready for the product
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    return x @ w_q, (x @ w_k).mT, x @ w_v

# %% self_attention/project | wrong | queries and keys are brought to length one, as cosine attention does
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    norm = lambda t: t / t.norm(dim=-1, keepdim=True)
    return norm(x @ w_q), norm(x @ w_k), x @ w_v

# %% self_attention/project | wrong | one tensor of all three side by side
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    return torch.cat([x @ w_q, x @ w_k, x @ w_v], dim=-1)

# %% self_attention/project | wrong | queries are divided by the root here already
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    return x @ w_q / w_q.shape[-1] ** 0.5, x @ w_k, x @ w_v

# %% self_attention/project | right | one product with the three matrices side by side, cut afterwards
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    sizes = [w.shape[-1] for w in (w_q, w_k, w_v)]
    return tuple((x @ torch.cat([w_q, w_k, w_v], dim=-1)).split(sizes, dim=-1))

# %% self_attention/scaled_dot_product | wrong | the root is rounded down to a whole number: right for squares such as d_k = 4 or 64 only
import math
from course_lib.attention import dot_scores, softmax, weighted_sum


def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    d_k = q.shape[-1]
    weights = softmax(dot_scores(q, k) / math.isqrt(d_k), mask)
    return weighted_sum(weights, v)

# %% self_attention/scaled_dot_product | wrong | divides by d_k, not by its root
from course_lib.attention import dot_scores, softmax, weighted_sum


def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    return weighted_sum(softmax(dot_scores(q, k) / q.shape[-1], mask), v)

# %% self_attention/scaled_dot_product | wrong | divides by the root of d_v
from course_lib.attention import dot_scores, softmax, weighted_sum


def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    return weighted_sum(softmax(dot_scores(q, k) / v.shape[-1] ** 0.5, mask), v)

# %% self_attention/scaled_dot_product | wrong | the scale comes after the softmax
from course_lib.attention import dot_scores, softmax, weighted_sum


def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    return weighted_sum(softmax(dot_scores(q, k), mask) / k.shape[-1] ** 0.5, v)

# %% self_attention/scaled_dot_product | wrong | True = masked
from course_lib.attention import softmax


def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return softmax(scores, None if mask is None else ~mask) @ v

# %% self_attention/scaled_dot_product | wrong | torch's function is called, but with a float mask that makes empty rows NaN
import torch.nn.functional as F


def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    if mask is not None:
        mask = torch.zeros(mask.shape, dtype=q.dtype, device=q.device).masked_fill(~mask, -torch.inf)
    weights = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        weights = weights + mask
    return F.softmax(weights, dim=-1) @ v

# %% self_attention/scaled_dot_product | wrong | divides by the root of the number of keys
from course_lib.attention import softmax


def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    return softmax(q @ k.mT / k.shape[-2] ** 0.5, mask) @ v

# %% self_attention/scaled_dot_product | wrong | q is scaled in place, and the caller's queries change
from course_lib.attention import softmax


def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    with torch.no_grad():
        q /= q.shape[-1] ** 0.5
    return softmax(q @ k.mT, mask) @ v

# %% self_attention/scaled_dot_product | right | both sides get the fourth root, and the division by the sum comes last
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    root = q.shape[-1] ** 0.25
    scores = torch.einsum("...id,...jd->...ij", q / root, k / root)
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    peak = scores.detach().amax(-1, keepdim=True)
    exps = torch.exp(scores - torch.where(peak == -torch.inf, 0.0, peak))
    total = exps.sum(-1, keepdim=True)
    return (exps @ v) / torch.where(total == 0, 1.0, total)

# %% self_attention/layer | wrong | the mask is not handed on
from course_lib.self_attention import project, scaled_dot_product_attention


class SelfAttention(nn.Module):

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v)

# %% self_attention/layer | wrong | keys and queries change places in the call
from course_lib.self_attention import project, scaled_dot_product_attention


class SelfAttention(nn.Module):

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        k, q, v = project(x, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v, mask)

# %% self_attention/layer | wrong | the words themselves are averaged, not their values
from course_lib.self_attention import project, scaled_dot_product_attention


class SelfAttention(nn.Module):

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, x, mask)

# %% self_attention/layer | wrong | the matrices are read by .data, so nothing is learned
from course_lib.self_attention import project, scaled_dot_product_attention


class SelfAttention(nn.Module):

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        q, k, v = project(x, self.w_q.data, self.w_k.data, self.w_v.data)
        return scaled_dot_product_attention(q, k, v, mask)

# %% self_attention/layer | wrong | scales by the root of d_model instead of d_k
from course_lib.attention import softmax


class SelfAttention(nn.Module):

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        q, k, v = x @ self.w_q, x @ self.w_k, x @ self.w_v
        return softmax(q @ k.mT / x.shape[-1] ** 0.5, mask) @ v

# %% self_attention/layer | wrong | a residual connection is added, which is for a later lesson (and needs d_v = d_model)
from course_lib.self_attention import project, scaled_dot_product_attention


class SelfAttention(nn.Module):

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return x + scaled_dot_product_attention(q, k, v, mask)

# %% self_attention/layer | wrong | scores softmaxed over the wrong axis
class SelfAttention(nn.Module):

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        q, k, v = x @ self.w_q, x @ self.w_k, x @ self.w_v
        scores = q @ k.mT / k.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, dim=1 if x.dim() == 3 else -2).nan_to_num(0.0) @ v

# %% self_attention/layer | right | the brackets moved: X (W_Q W_K^T) X^T, and the values projected at the end
from course_lib.attention import softmax


class SelfAttention(nn.Module):

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        scores = x @ (self.w_q @ self.w_k.mT) @ x.mT
        weights = softmax(scores * self.w_q.shape[-1] ** -0.5, mask)
        return (weights @ x) @ self.w_v
