# %% self_attention/scaled_dot_product | wrong | divided by d_k, not by its root
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / q.shape[-1]
    return softmax(scores, mask) @ v

# %% self_attention/scaled_dot_product | wrong | the scale is applied after the softmax
def scaled_dot_product_attention(q, k, v, mask=None):
    weights = softmax(q @ k.transpose(-2, -1), mask) / math.sqrt(q.shape[-1])
    return weights @ v


import math

# %% self_attention/scaled_dot_product | wrong | scaled by the root of the number of keys
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / k.shape[-2] ** 0.5
    return softmax(scores, mask) @ v

# %% self_attention/scaled_dot_product | right | both sides carry a fourth root
def scaled_dot_product_attention(q, k, v, mask=None):
    root = q.shape[-1] ** -0.25
    scores = torch.matmul(q * root, torch.swapaxes(k * root, -1, -2))
    return torch.matmul(softmax(scores, mask), v)
