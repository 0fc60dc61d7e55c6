# %% encoder/block | wrong | another `norm` is taken for post-norm without a word
from typing import Literal
from course_lib.add_norm import PostNorm, PreNorm, layer_norm
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention


class EncoderBlock(nn.Module):
    def __init__(self, d_model, heads, d_ff, norm="post", *, attention=MultiHeadAttention, feed_forward=FeedForward, norm_layer=layer_norm):
        super().__init__()
        add = PreNorm if norm == "pre" else PostNorm
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(self, x, mask=None):
        return self.feed_forward(self.attention(x, mask))

# %% encoder/block | wrong | pre and post are exchanged
from typing import Literal
from course_lib.add_norm import PostNorm, PreNorm, layer_norm
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention


class EncoderBlock(nn.Module):
    def __init__(self, d_model, heads, d_ff, norm="post", *, attention=MultiHeadAttention, feed_forward=FeedForward, norm_layer=layer_norm):
        super().__init__()
        if norm not in ("pre", "post"):
            raise ValueError("norm is pre or post")
        add = PostNorm if norm == "pre" else PreNorm
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(self, x, mask=None):
        return self.feed_forward(self.attention(x, mask))

# %% encoder/block | wrong | the two layers run side by side on x, and their outputs are added
from typing import Literal
from course_lib.add_norm import PostNorm, PreNorm, layer_norm
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention


class EncoderBlock(nn.Module):
    def __init__(self, d_model, heads, d_ff, norm="post", *, attention=MultiHeadAttention, feed_forward=FeedForward, norm_layer=layer_norm):
        super().__init__()
        if norm not in ("pre", "post"):
            raise ValueError("norm is pre or post")
        add = PreNorm if norm == "pre" else PostNorm
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(self, x, mask=None):
        return self.attention(x, mask) + self.feed_forward(x)
