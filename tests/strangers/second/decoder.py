# %% decoder/cross_attention | wrong | the encoder asks and the decoder answers
from course_lib.self_attention import scaled_dot_product_attention


def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    if mask is not None:
        mask = mask.mT
    return scaled_dot_product_attention(h @ w_k, z @ w_q, z @ w_q, mask)

# %% decoder/cross_attention | wrong | the values are the encoder's states themselves, not projected
from course_lib.self_attention import scaled_dot_product_attention


def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    return scaled_dot_product_attention(z @ w_q, h @ w_k, h, mask)

# %% decoder/cross_attention | wrong | the mask is not handed on
from course_lib.self_attention import scaled_dot_product_attention


def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    return scaled_dot_product_attention(z @ w_q, h @ w_k, h @ w_v)

# %% decoder/cross_attention | wrong | the root of d_z scales, not that of d_k
from course_lib.attention import softmax


def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    scores = (z @ w_q) @ (h @ w_k).mT / z.shape[-1] ** 0.5
    return softmax(scores, mask) @ (h @ w_v)

# %% decoder/cross_attention | wrong | keys and values are projected by each other's matrix
from course_lib.self_attention import scaled_dot_product_attention


def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    return scaled_dot_product_attention(z @ w_q, h @ w_v, h @ w_k, mask)

# %% decoder/cross_attention | wrong | self-attention: the keys and values come from the decoder
from course_lib.self_attention import scaled_dot_product_attention


def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    return scaled_dot_product_attention(z @ w_q, z @ w_k, z @ w_v, mask)

# %% decoder/cross_attention | wrong | a decoder's state that sees no source word gets NaN
def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    q, k, v = z @ w_q, h @ w_k, h @ w_v
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v

# %% decoder/cross_attention | right | the query is carried over to the encoder's space, and values are projected last
from course_lib.attention import softmax


def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    asked = torch.einsum("...qz,zk,hk->...qh", z, w_q, w_k)
    scores = torch.einsum("...qh,...kh->...qk", asked, h) * w_k.shape[1] ** -0.5
    return torch.einsum("...qk,...kh,hv->...qv", softmax(scores, mask), h, w_v)

# %% decoder/grouped_query | wrong | the key heads are repeated as a whole: heads 1, 4, 7 share, not 1, 2, 3
from course_lib.self_attention import scaled_dot_product_attention


def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    heads, groups = q.shape[-3], k.shape[-3]
    if heads % groups:
        raise ValueError("groups do not divide heads")
    k = torch.cat([k] * (heads // groups), dim=-3)
    v = torch.cat([v] * (heads // groups), dim=-3)
    return scaled_dot_product_attention(q, k, v, mask)

# %% decoder/grouped_query | wrong | no refusal: torch complains of sizes itself
from course_lib.self_attention import scaled_dot_product_attention


def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    share = q.shape[-3] // k.shape[-3]
    k, v = k.repeat_interleave(share, dim=-3), v.repeat_interleave(share, dim=-3)
    return scaled_dot_product_attention(q, k, v, mask)

# %% decoder/grouped_query | wrong | the heads' axis is counted from the front, which holds for one batch axis only
from course_lib.self_attention import scaled_dot_product_attention


def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    heads, groups = q.shape[1], k.shape[1]
    if heads % groups:
        raise ValueError("groups do not divide heads")
    share = heads // groups
    k, v = k.repeat_interleave(share, dim=1), v.repeat_interleave(share, dim=1)
    return scaled_dot_product_attention(q, k, v, mask)

# %% decoder/grouped_query | wrong | the mask gets a head axis once more
from course_lib.self_attention import scaled_dot_product_attention


def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    heads, groups = q.shape[-3], k.shape[-3]
    if heads % groups:
        raise ValueError("groups do not divide heads")
    share = heads // groups
    k, v = k.repeat_interleave(share, dim=-3), v.repeat_interleave(share, dim=-3)
    if mask is not None:
        mask = mask.unsqueeze(-3)
    return scaled_dot_product_attention(q, k, v, mask)

# %% decoder/grouped_query | wrong | the queries of a group are averaged, and their heads get one result
from course_lib.self_attention import scaled_dot_product_attention


def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    heads, groups = q.shape[-3], k.shape[-3]
    if heads % groups:
        raise ValueError("groups do not divide heads")
    share = heads // groups
    q = rearrange(q, "... (g s) n d -> ... g s n d", s=share).mean(dim=-3)
    q, k, v = (part.repeat_interleave(share, dim=-3) for part in (q, k, v))
    return scaled_dot_product_attention(q, k, v, mask)

# %% decoder/grouped_query | wrong | multi-query: all heads read the first key and value head
from course_lib.self_attention import scaled_dot_product_attention


def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    heads, groups = q.shape[-3], k.shape[-3]
    if heads % groups:
        raise ValueError("groups do not divide heads")
    k = k[..., :1, :, :].repeat_interleave(heads, dim=-3)
    v = v[..., :1, :, :].repeat_interleave(heads, dim=-3)
    return scaled_dot_product_attention(q, k, v, mask)

# %% decoder/grouped_query | wrong | the mask is cut to the first head's
from course_lib.self_attention import scaled_dot_product_attention


def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    heads, groups = q.shape[-3], k.shape[-3]
    if heads % groups:
        raise ValueError("groups do not divide heads")
    share = heads // groups
    k, v = k.repeat_interleave(share, dim=-3), v.repeat_interleave(share, dim=-3)
    if mask is not None and mask.dim() > 2:
        mask = mask[..., :1, :, :]
    return scaled_dot_product_attention(q, k, v, mask)

# %% decoder/grouped_query | right | head by head, each with the key and value head of its group
from course_lib.self_attention import scaled_dot_product_attention


def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    heads, groups = q.size(-3), k.size(-3)
    share, left = divmod(heads, groups)
    if left:
        raise ValueError(f"{groups} groups cannot share {heads} heads equally")
    found = []
    for head in range(heads):
        held = mask
        if mask is not None and mask.dim() > 2:
            held = mask.select(-3, head if mask.size(-3) > 1 else 0)
        keys, values = k.select(-3, head // share), v.select(-3, head // share)
        found.append(scaled_dot_product_attention(q.select(-3, head), keys, values, held))
    return torch.stack(found, dim=-3)

# %% decoder/block | wrong | looks at the source before it looks back
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention


class DecoderBlock(nn.Module):

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
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        x = self.cross_attention(x, memory, memory_mask)
        x = self.attention(x, mask)
        return self.feed_forward(x)

# %% decoder/block | wrong | the two masks change places
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention


class DecoderBlock(nn.Module):

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
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        x = self.attention(x, memory_mask)
        x = self.cross_attention(x, memory, mask)
        return self.feed_forward(x)

# %% decoder/block | wrong | the source's mask is forgotten
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention


class DecoderBlock(nn.Module):

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
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        x = self.attention(x, mask)
        x = self.cross_attention(x, memory)
        return self.feed_forward(x)

# %% decoder/block | wrong | no cross-attention: the source is never seen
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention


class DecoderBlock(nn.Module):

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
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        x = self.attention(x, mask)
        return self.feed_forward(x)

# %% decoder/block | wrong | the second layer looks at the target's own words
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention


class DecoderBlock(nn.Module):

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
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        x = self.attention(x, mask)
        x = self.cross_attention(x, x, mask)
        return self.feed_forward(x)

# %% decoder/block | wrong | a causal mask of its own making, even where none is asked
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention
from course_lib.masks import causal_mask


class DecoderBlock(nn.Module):

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
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        if mask is None:
            mask = causal_mask(x.shape[-2]).to(x.device)
        x = self.attention(x, mask)
        x = self.cross_attention(x, memory, memory_mask)
        return self.feed_forward(x)

# %% decoder/block | wrong | `look_back` is ignored: self-attention always stands first
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention


class DecoderBlock(nn.Module):

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
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if True:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        x = self.attention(x, mask)
        x = self.cross_attention(x, memory, memory_mask)
        return self.feed_forward(x)

# %% decoder/block | right | nested calls, from inside out
from typing import Literal
from course_lib.add_norm import layer_norm
from course_lib.encoder import residual
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention


class DecoderBlock(nn.Module):

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
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        return self.feed_forward(
            self.cross_attention(self.attention(x, mask), memory, memory_mask),
        )
