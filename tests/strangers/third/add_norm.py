# %% add_norm/batch_norm | wrong | the padded tokens take part in the statistics
def batch_norm(x, gain, bias, mask=None, eps=1e-5):
    if mask is not None and (mask.dtype != torch.bool or mask.shape != x.shape[:2]):
        raise ValueError("the mask does not fit")
    mean = x.mean(dim=(0, 1))
    variance = ((x - mean) ** 2).mean(dim=(0, 1))
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias

# %% add_norm/batch_norm | wrong | each sentence has statistics of its own
def batch_norm(x, gain, bias, mask=None, eps=1e-5):
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("the mask does not fit")
    real = mask[..., None].to(x.dtype)
    count = real.sum(1, keepdim=True).clamp(min=1)
    mean = (x * real).sum(1, keepdim=True) / count
    variance = ((x - mean) ** 2 * real).sum(1, keepdim=True) / count
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias

# %% add_norm/batch_norm | wrong | padding is set to zero in the result
def batch_norm(x, gain, bias, mask=None, eps=1e-5):
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("the mask does not fit")
    real = mask[..., None].to(x.dtype)
    count = real.sum().clamp(min=1)
    mean = (x * real).sum((0, 1)) / count
    variance = ((x - mean) ** 2 * real).sum((0, 1)) / count
    return (gain * (x - mean) / torch.sqrt(variance + eps) + bias) * real

# %% add_norm/erase_direction | wrong | the direction's length counts: u is not brought to length one
def erase_direction(stream, direction):
    if not direction.any():
        raise ValueError("a direction of zeros")
    return stream - (stream @ direction)[..., None] * direction

# %% add_norm/erase_direction | wrong | returns the part along the direction
def erase_direction(stream, direction):
    if not direction.any():
        raise ValueError("a direction of zeros")
    u = direction / direction.norm()
    return (stream @ u)[..., None] * u

# %% add_norm/erase_direction | wrong | the part is added: the direction is doubled
def erase_direction(stream, direction):
    if not direction.any():
        raise ValueError("a direction of zeros")
    u = direction / direction.norm()
    return stream + (stream @ u)[..., None] * u
