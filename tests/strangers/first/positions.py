# %% positions/sinusoidal | right | fills the table through complex numbers of length one
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Describe the positions 0..n-1 by waves, from fast to slow.

    p_(i, 2c) = sin(i / 10000^(2c / d_model)),  p_(i, 2c+1) = cos(i / 10000^(2c / d_model)), with
    c from 0. The wavelengths grow from 2 pi to nearly 10000 * 2 pi positions. The table has torch's
    default float type. Source: Vaswani et al. 2017, section 3.5. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("sines and cosines come in pairs, so d_model must be even")
    real = torch.get_default_dtype()
    i = torch.arange(n, dtype=torch.float64)[:, None]
    c = torch.arange(d_model // 2, dtype=torch.float64)[None, :]
    angle = i * 10000.0 ** (-2 * c / d_model)
    hands = torch.polar(torch.ones_like(angle), angle)
    return torch.stack([hands.imag, hands.real], dim=-1).reshape(n, d_model).to(real)


# %% positions/sinusoidal | wrong | sines in the left half, cosines in the right
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Describe the positions 0..n-1 by waves, from fast to slow.

    p_(i, 2c) = sin(i / 10000^(2c / d_model)),  p_(i, 2c+1) = cos(i / 10000^(2c / d_model)), with
    c from 0. The wavelengths grow from 2 pi to nearly 10000 * 2 pi positions. The table has torch's
    default float type. Source: Vaswani et al. 2017, section 3.5. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("d_model must be even")
    i = torch.arange(n)[:, None]
    speed = 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.cat([torch.sin(i * speed), torch.cos(i * speed)], dim=-1)


# %% positions/sinusoidal | wrong | cosines in the even columns
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Describe the positions 0..n-1 by waves, from fast to slow.

    p_(i, 2c) = sin(i / 10000^(2c / d_model)),  p_(i, 2c+1) = cos(i / 10000^(2c / d_model)), with
    c from 0. The wavelengths grow from 2 pi to nearly 10000 * 2 pi positions. The table has torch's
    default float type. Source: Vaswani et al. 2017, section 3.5. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("d_model must be even")
    table = torch.zeros(n, d_model)
    angle = torch.arange(n)[:, None] * 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    table[:, 0::2] = angle.cos()
    table[:, 1::2] = angle.sin()
    return table


# %% positions/sinusoidal | wrong | counts the waves from 1, as the lectures print it
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Describe the positions 0..n-1 by waves, from fast to slow.

    p_(i, 2c) = sin(i / 10000^(2c / d_model)),  p_(i, 2c+1) = cos(i / 10000^(2c / d_model)), with
    c from 0. The wavelengths grow from 2 pi to nearly 10000 * 2 pi positions. The table has torch's
    default float type. Source: Vaswani et al. 2017, section 3.5. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("d_model must be even")
    table = torch.zeros(n, d_model)
    angle = torch.arange(n)[:, None] / 10000 ** (torch.arange(2, d_model + 1, 2) / d_model)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


# %% positions/sinusoidal | wrong | counts positions from 1
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Describe the positions 0..n-1 by waves, from fast to slow.

    p_(i, 2c) = sin(i / 10000^(2c / d_model)),  p_(i, 2c+1) = cos(i / 10000^(2c / d_model)), with
    c from 0. The wavelengths grow from 2 pi to nearly 10000 * 2 pi positions. The table has torch's
    default float type. Source: Vaswani et al. 2017, section 3.5. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("d_model must be even")
    table = torch.zeros(n, d_model)
    angle = torch.arange(1, n + 1)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


# %% positions/sinusoidal | wrong | the exponent is the column over d_model, so the cosine has another speed than its sine
import math


def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Describe the positions 0..n-1 by waves, from fast to slow.

    p_(i, 2c) = sin(i / 10000^(2c / d_model)),  p_(i, 2c+1) = cos(i / 10000^(2c / d_model)), with
    c from 0. The wavelengths grow from 2 pi to nearly 10000 * 2 pi positions. The table has torch's
    default float type. Source: Vaswani et al. 2017, section 3.5. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("d_model must be even")
    table = torch.zeros(n, d_model)
    for i in range(n):
        for c in range(d_model):
            angle = i / 10000 ** (c / d_model)
            table[i, c] = math.cos(angle) if c % 2 else math.sin(angle)
    return table


# %% positions/sinusoidal | wrong | the exponent is c / d_model instead of 2c / d_model
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Describe the positions 0..n-1 by waves, from fast to slow.

    p_(i, 2c) = sin(i / 10000^(2c / d_model)),  p_(i, 2c+1) = cos(i / 10000^(2c / d_model)), with
    c from 0. The wavelengths grow from 2 pi to nearly 10000 * 2 pi positions. The table has torch's
    default float type. Source: Vaswani et al. 2017, section 3.5. Raises ValueError for an odd
    d_model.
    """
    # TODO: count the positions, and find the speed of each wave
    # TODO: turn each wave by its angle at each position
    # TODO: lay sines in the even columns and cosines in the odd ones
    if d_model % 2:
        raise ValueError("d_model must be even")
    c = torch.arange(d_model // 2)
    angle = torch.arange(n)[:, None] / 10000 ** (c / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


# %% positions/sinusoidal | wrong | an odd d_model gives an odd table instead of an error
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Describe the positions 0..n-1 by waves, from fast to slow.

    p_(i, 2c) = sin(i / 10000^(2c / d_model)),  p_(i, 2c+1) = cos(i / 10000^(2c / d_model)), with
    c from 0. The wavelengths grow from 2 pi to nearly 10000 * 2 pi positions. The table has torch's
    default float type. Source: Vaswani et al. 2017, section 3.5. Raises ValueError for an odd
    d_model.
    """
    table = torch.zeros(n, d_model)
    c = torch.arange(0, d_model, 2)
    angle = torch.arange(n)[:, None] / 10000 ** (c / d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


# %% positions/sinusoidal | wrong | computed by numpy and handed back in double precision
import numpy as np


def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Describe the positions 0..n-1 by waves, from fast to slow.

    p_(i, 2c) = sin(i / 10000^(2c / d_model)),  p_(i, 2c+1) = cos(i / 10000^(2c / d_model)), with
    c from 0. The wavelengths grow from 2 pi to nearly 10000 * 2 pi positions. The table has torch's
    default float type. Source: Vaswani et al. 2017, section 3.5. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("d_model must be even")
    angle = np.arange(n)[:, None] / 10000 ** (np.arange(0, d_model, 2)[None] / d_model)
    table = np.zeros((n, d_model))
    table[:, 0::2] = np.sin(angle)
    table[:, 1::2] = np.cos(angle)
    return torch.from_numpy(table)


# %% positions/sinusoidal | wrong | integer division makes all exponents zero
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Describe the positions 0..n-1 by waves, from fast to slow.

    p_(i, 2c) = sin(i / 10000^(2c / d_model)),  p_(i, 2c+1) = cos(i / 10000^(2c / d_model)), with
    c from 0. The wavelengths grow from 2 pi to nearly 10000 * 2 pi positions. The table has torch's
    default float type. Source: Vaswani et al. 2017, section 3.5. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("d_model must be even")
    angle = torch.arange(n)[:, None] / 10000.0 ** (torch.arange(0, d_model, 2) // d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


# %% positions/shift_matrix | right | builds the rotations with matrix_exp of a skew matrix
import math


def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """Find the matrix M that moves every sinusoidal position on: p(i + offset) = p(i) M.

    M turns each pair (sin, cos) by its own angle b = offset / 10000^(2c / d_model): its blocks
    are [[cos b, -sin b], [sin b, cos b]], whatever i is. M has torch's default float type. Source:
    Vaswani et al. 2017, section 3.5, who claim that such an M exists. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError(f"{d_model} columns do not come in pairs")
    skew = torch.zeros(d_model, d_model, dtype=torch.float64)
    for c in range(d_model // 2):
        angle = offset / 10000 ** (2 * c / d_model)
        skew[2 * c, 2 * c + 1] = -math.remainder(angle, 2 * math.pi)
        skew[2 * c + 1, 2 * c] = math.remainder(angle, 2 * math.pi)
    return torch.linalg.matrix_exp(skew).to(torch.get_default_dtype())


# %% positions/shift_matrix | wrong | turns the other way: the blocks are transposed
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """Find the matrix M that moves every sinusoidal position on: p(i + offset) = p(i) M.

    M turns each pair (sin, cos) by its own angle b = offset / 10000^(2c / d_model): its blocks
    are [[cos b, -sin b], [sin b, cos b]], whatever i is. M has torch's default float type. Source:
    Vaswani et al. 2017, section 3.5, who claim that such an M exists. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("odd d_model")
    b = offset / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    blocks = [torch.tensor([[t.cos(), t.sin()], [-t.sin(), t.cos()]]) for t in b]
    return torch.block_diag(*blocks)


# %% positions/shift_matrix | wrong | one angle for all pairs
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """Find the matrix M that moves every sinusoidal position on: p(i + offset) = p(i) M.

    M turns each pair (sin, cos) by its own angle b = offset / 10000^(2c / d_model): its blocks
    are [[cos b, -sin b], [sin b, cos b]], whatever i is. M has torch's default float type. Source:
    Vaswani et al. 2017, section 3.5, who claim that such an M exists. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("odd d_model")
    b = torch.tensor(float(offset))
    block = torch.stack([b.cos(), -b.sin(), b.sin(), b.cos()]).reshape(2, 2)
    return torch.block_diag(*[block] * (d_model // 2))


# %% positions/shift_matrix | wrong | a matrix of sines in one half and cosines in the other
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """Find the matrix M that moves every sinusoidal position on: p(i + offset) = p(i) M.

    M turns each pair (sin, cos) by its own angle b = offset / 10000^(2c / d_model): its blocks
    are [[cos b, -sin b], [sin b, cos b]], whatever i is. M has torch's default float type. Source:
    Vaswani et al. 2017, section 3.5, who claim that such an M exists. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("odd d_model")
    b = offset / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    cos, sin = torch.diag(b.cos()), torch.diag(b.sin())
    return torch.cat([torch.cat([cos, -sin], dim=1), torch.cat([sin, cos], dim=1)])


# %% positions/shift_matrix | wrong | both sines are positive
import math


def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """Find the matrix M that moves every sinusoidal position on: p(i + offset) = p(i) M.

    M turns each pair (sin, cos) by its own angle b = offset / 10000^(2c / d_model): its blocks
    are [[cos b, -sin b], [sin b, cos b]], whatever i is. M has torch's default float type. Source:
    Vaswani et al. 2017, section 3.5, who claim that such an M exists. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("odd d_model")
    m = torch.zeros(d_model, d_model)
    for c in range(d_model // 2):
        b = offset / 10000 ** (2 * c / d_model)
        m[2 * c, 2 * c] = m[2 * c + 1, 2 * c + 1] = math.cos(b)
        m[2 * c, 2 * c + 1] = m[2 * c + 1, 2 * c] = math.sin(b)
    return m


# %% positions/shift_matrix | wrong | the offset is taken without its sign
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """Find the matrix M that moves every sinusoidal position on: p(i + offset) = p(i) M.

    M turns each pair (sin, cos) by its own angle b = offset / 10000^(2c / d_model): its blocks
    are [[cos b, -sin b], [sin b, cos b]], whatever i is. M has torch's default float type. Source:
    Vaswani et al. 2017, section 3.5, who claim that such an M exists. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("odd d_model")
    b = abs(offset) / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.block_diag(*[torch.tensor([[t.cos(), -t.sin()], [t.sin(), t.cos()]]) for t in b])


# %% positions/shift_matrix | wrong | solved by least squares from a few positions, which does not determine M
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """Find the matrix M that moves every sinusoidal position on: p(i + offset) = p(i) M.

    M turns each pair (sin, cos) by its own angle b = offset / 10000^(2c / d_model): its blocks
    are [[cos b, -sin b], [sin b, cos b]], whatever i is. M has torch's default float type. Source:
    Vaswani et al. 2017, section 3.5, who claim that such an M exists. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("odd d_model")
    start = max(0, -offset)
    waves = sinusoidal(start + abs(offset) + 8, d_model)
    before = waves[start : start + 8]
    after = waves[start + offset : start + offset + 8]
    return torch.linalg.pinv(before) @ after


# %% positions/shift_matrix | wrong | an odd d_model is not refused
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """Find the matrix M that moves every sinusoidal position on: p(i + offset) = p(i) M.

    M turns each pair (sin, cos) by its own angle b = offset / 10000^(2c / d_model): its blocks
    are [[cos b, -sin b], [sin b, cos b]], whatever i is. M has torch's default float type. Source:
    Vaswani et al. 2017, section 3.5, who claim that such an M exists. Raises ValueError for an odd
    d_model.
    """
    b = offset / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.block_diag(*[torch.tensor([[t.cos(), -t.sin()], [t.sin(), t.cos()]]) for t in b])


# %% positions/shift_matrix | wrong | the exponent counts pairs, not columns
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """Find the matrix M that moves every sinusoidal position on: p(i + offset) = p(i) M.

    M turns each pair (sin, cos) by its own angle b = offset / 10000^(2c / d_model): its blocks
    are [[cos b, -sin b], [sin b, cos b]], whatever i is. M has torch's default float type. Source:
    Vaswani et al. 2017, section 3.5, who claim that such an M exists. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("odd d_model")
    b = offset / 10000 ** (torch.arange(d_model // 2) / d_model)
    return torch.block_diag(*[torch.tensor([[t.cos(), -t.sin()], [t.sin(), t.cos()]]) for t in b])


# %% positions/shift_matrix | wrong | returns float64
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """Find the matrix M that moves every sinusoidal position on: p(i + offset) = p(i) M.

    M turns each pair (sin, cos) by its own angle b = offset / 10000^(2c / d_model): its blocks
    are [[cos b, -sin b], [sin b, cos b]], whatever i is. M has torch's default float type. Source:
    Vaswani et al. 2017, section 3.5, who claim that such an M exists. Raises ValueError for an odd
    d_model.
    """
    if d_model % 2:
        raise ValueError("odd d_model")
    b = offset / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    block = torch.stack([b.cos(), -b.sin(), b.sin(), b.cos()], dim=-1).reshape(-1, 2, 2)
    return torch.block_diag(*block)


# %% positions/learned | right | looks the rows up as an embedding
class LearnedPositions(nn.Module):
    """Learn one vector for each position: x_i + p_i.

    Source: Gehring et al. 2017, section 3.1.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Add to each word the vector of its position.

        Raises ValueError for sentences longer than `max_length`, which have no vectors.
        """
        n, known = x.shape[-2], self.table.shape[0]
        if n > known:
            raise ValueError(f"{n} words, but only {known} places have a vector")
        return torch.add(x, nn.functional.embedding(torch.arange(n, device=x.device), self.table))


# %% positions/learned | wrong | a sentence that is too long wraps round to the first rows
class LearnedPositions(nn.Module):
    """Learn one vector for each position: x_i + p_i.

    Source: Gehring et al. 2017, section 3.1.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Add to each word the vector of its position.

        Raises ValueError for sentences longer than `max_length`, which have no vectors.
        """
        places = torch.arange(x.shape[-2]) % self.table.shape[0]
        return x + self.table[places]


# %% positions/learned | wrong | a sentence that is too long raises IndexError, not ValueError
class LearnedPositions(nn.Module):
    """Learn one vector for each position: x_i + p_i.

    Source: Gehring et al. 2017, section 3.1.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Add to each word the vector of its position.

        Raises ValueError for sentences longer than `max_length`, which have no vectors.
        """
        return x + torch.stack([self.table[i] for i in range(x.shape[-2])])


# %% positions/learned | wrong | a sentence of exactly max_length is refused
class LearnedPositions(nn.Module):
    """Learn one vector for each position: x_i + p_i.

    Source: Gehring et al. 2017, section 3.1.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Add to each word the vector of its position.

        Raises ValueError for sentences longer than `max_length`, which have no vectors.
        """
        n = x.shape[-2]
        if n >= len(self.table):
            raise ValueError("too long")
        return x + self.table[:n]


# %% positions/learned | wrong | the last n rows of the table
class LearnedPositions(nn.Module):
    """Learn one vector for each position: x_i + p_i.

    Source: Gehring et al. 2017, section 3.1.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Add to each word the vector of its position.

        Raises ValueError for sentences longer than `max_length`, which have no vectors.
        """
        # TODO: refuse a sentence that is longer than the table
        # TODO: add the first n vectors of the table to the words
        n = x.shape[-2]
        if n > len(self.table):
            raise ValueError("too long")
        return x + self.table[-n:]


# %% positions/learned | wrong | the sentence is cut to the table
class LearnedPositions(nn.Module):
    """Learn one vector for each position: x_i + p_i.

    Source: Gehring et al. 2017, section 3.1.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Add to each word the vector of its position.

        Raises ValueError for sentences longer than `max_length`, which have no vectors.
        """
        n = min(x.shape[-2], len(self.table))
        return x[..., :n, :] + self.table[:n]


# %% positions/learned | wrong | adds into the caller's words
class LearnedPositions(nn.Module):
    """Learn one vector for each position: x_i + p_i.

    Source: Gehring et al. 2017, section 3.1.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Add to each word the vector of its position.

        Raises ValueError for sentences longer than `max_length`, which have no vectors.
        """
        # TODO: refuse a sentence that is longer than the table
        # TODO: add the first n vectors of the table to the words
        n = x.shape[-2]
        if n > len(self.table):
            raise ValueError("too long")
        with torch.no_grad():
            x += self.table[:n]
        return x


# %% positions/learned | wrong | returns the positions without the words
class LearnedPositions(nn.Module):
    """Learn one vector for each position: x_i + p_i.

    Source: Gehring et al. 2017, section 3.1.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Add to each word the vector of its position.

        Raises ValueError for sentences longer than `max_length`, which have no vectors.
        """
        # TODO: refuse a sentence that is longer than the table
        # TODO: add the first n vectors of the table to the words
        n = x.shape[-2]
        if n > len(self.table):
            raise ValueError("too long")
        return self.table[:n].expand_as(x)


# %% positions/learned | wrong | takes n from the first axis
class LearnedPositions(nn.Module):
    """Learn one vector for each position: x_i + p_i.

    Source: Gehring et al. 2017, section 3.1.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Add to each word the vector of its position.

        Raises ValueError for sentences longer than `max_length`, which have no vectors.
        """
        # TODO: refuse a sentence that is longer than the table
        # TODO: add the first n vectors of the table to the words
        n = x.shape[0]
        if n > len(self.table):
            raise ValueError("too long")
        return x + self.table[:n]


# %% positions/learned | wrong | the positions do not learn
class LearnedPositions(nn.Module):
    """Learn one vector for each position: x_i + p_i.

    Source: Gehring et al. 2017, section 3.1.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Add to each word the vector of its position.

        Raises ValueError for sentences longer than `max_length`, which have no vectors.
        """
        n = x.shape[-2]
        if n > len(self.table):
            raise ValueError("too long")
        return x + self.table[:n].detach()


# %% positions/relative_index | right | plain Python lists
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    """Number the distances from query i to key j: clip(j - i, -m, m) + m, for m = max_distance.

    0 means m or more words to the left, m the same place, 2m m or more words to the right; i and
    j both count from 0. Source: Shaw et al. 2018, section 3.2.

    >>> relative_index(2, 4, max_distance=2)
    tensor([[2, 3, 4, 4],
            [1, 2, 3, 4]])
    """
    rows = []
    for i in range(n_q):
        rows.append([min(max(j - i, -max_distance), max_distance) + max_distance for j in range(n_k)])
    return torch.tensor(rows, dtype=torch.long).reshape(n_q, n_k)


# %% positions/relative_index | wrong | i - j instead of j - i
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    """Number the distances from query i to key j: clip(j - i, -m, m) + m, for m = max_distance.

    0 means m or more words to the left, m the same place, 2m m or more words to the right; i and
    j both count from 0. Source: Shaw et al. 2018, section 3.2.

    >>> relative_index(2, 4, max_distance=2)
    tensor([[2, 3, 4, 4],
            [1, 2, 3, 4]])
    """
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    return (i - j).clamp(-max_distance, max_distance) + max_distance


# %% positions/relative_index | wrong | forgets to shift, so there are negative numbers
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    """Number the distances from query i to key j: clip(j - i, -m, m) + m, for m = max_distance.

    0 means m or more words to the left, m the same place, 2m m or more words to the right; i and
    j both count from 0. Source: Shaw et al. 2018, section 3.2.

    >>> relative_index(2, 4, max_distance=2)
    tensor([[2, 3, 4, 4],
            [1, 2, 3, 4]])
    """
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    return (j - i).clamp(-max_distance, max_distance)


# %% positions/relative_index | wrong | forgets to clip
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    """Number the distances from query i to key j: clip(j - i, -m, m) + m, for m = max_distance.

    0 means m or more words to the left, m the same place, 2m m or more words to the right; i and
    j both count from 0. Source: Shaw et al. 2018, section 3.2.

    >>> relative_index(2, 4, max_distance=2)
    tensor([[2, 3, 4, 4],
            [1, 2, 3, 4]])
    """
    # TODO: subtract the place of each query from that of each key
    # TODO: treat all distances past the largest alike, and count from 0
    return torch.arange(n_k)[None] - torch.arange(n_q)[:, None] + max_distance


# %% positions/relative_index | wrong | clips to 0..2m before shifting
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    """Number the distances from query i to key j: clip(j - i, -m, m) + m, for m = max_distance.

    0 means m or more words to the left, m the same place, 2m m or more words to the right; i and
    j both count from 0. Source: Shaw et al. 2018, section 3.2.

    >>> relative_index(2, 4, max_distance=2)
    tensor([[2, 3, 4, 4],
            [1, 2, 3, 4]])
    """
    d = torch.arange(n_k)[None, :] - torch.arange(n_q)[:, None]
    return d.clamp(0, 2 * max_distance) + max_distance


# %% positions/relative_index | wrong | distances without sign
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    """Number the distances from query i to key j: clip(j - i, -m, m) + m, for m = max_distance.

    0 means m or more words to the left, m the same place, 2m m or more words to the right; i and
    j both count from 0. Source: Shaw et al. 2018, section 3.2.

    >>> relative_index(2, 4, max_distance=2)
    tensor([[2, 3, 4, 4],
            [1, 2, 3, 4]])
    """
    # TODO: subtract the place of each query from that of each key
    # TODO: treat all distances past the largest alike, and count from 0
    d = (torch.arange(n_k)[None, :] - torch.arange(n_q)[:, None]).abs()
    return d.clamp(max=max_distance) + max_distance


# %% positions/relative_index | wrong | keys in the rows
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    """Number the distances from query i to key j: clip(j - i, -m, m) + m, for m = max_distance.

    0 means m or more words to the left, m the same place, 2m m or more words to the right; i and
    j both count from 0. Source: Shaw et al. 2018, section 3.2.

    >>> relative_index(2, 4, max_distance=2)
    tensor([[2, 3, 4, 4],
            [1, 2, 3, 4]])
    """
    d = torch.arange(n_k)[:, None] - torch.arange(n_q)[None, :]
    return d.clamp(-max_distance, max_distance) + max_distance


# %% positions/relative_index | wrong | the queries are taken as the last n_q keys
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    """Number the distances from query i to key j: clip(j - i, -m, m) + m, for m = max_distance.

    0 means m or more words to the left, m the same place, 2m m or more words to the right; i and
    j both count from 0. Source: Shaw et al. 2018, section 3.2.

    >>> relative_index(2, 4, max_distance=2)
    tensor([[2, 3, 4, 4],
            [1, 2, 3, 4]])
    """
    # TODO: subtract the place of each query from that of each key
    # TODO: treat all distances past the largest alike, and count from 0
    i = torch.arange(n_k - n_q, n_k)[:, None]
    return (torch.arange(n_k) - i).clamp(-max_distance, max_distance) + max_distance


# %% positions/relative_index | wrong | returns floats
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    """Number the distances from query i to key j: clip(j - i, -m, m) + m, for m = max_distance.

    0 means m or more words to the left, m the same place, 2m m or more words to the right; i and
    j both count from 0. Source: Shaw et al. 2018, section 3.2.

    >>> relative_index(2, 4, max_distance=2)
    tensor([[2, 3, 4, 4],
            [1, 2, 3, 4]])
    """
    i, j = torch.arange(float(n_q))[:, None], torch.arange(float(n_k))
    return (j - i).clamp(-max_distance, max_distance) + max_distance


# %% positions/relative_index | wrong | shifts by m + 1
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    """Number the distances from query i to key j: clip(j - i, -m, m) + m, for m = max_distance.

    0 means m or more words to the left, m the same place, 2m m or more words to the right; i and
    j both count from 0. Source: Shaw et al. 2018, section 3.2.

    >>> relative_index(2, 4, max_distance=2)
    tensor([[2, 3, 4, 4],
            [1, 2, 3, 4]])
    """
    d = torch.arange(n_k)[None, :] - torch.arange(n_q)[:, None]
    return d.clamp(-max_distance, max_distance) + max_distance + 1


# %% positions/relative_attention | right | adds the vectors to keys and values pair by pair, without einsum
def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend to words and to how far away they stand, with a learned vector for each distance.

    s_ij = q_i . (k_j + a_ij) / sqrt(d_k);  o_i = sum_j softmax(s_i)_j (v_j + b_ij), where a_ij
    and b_ij are the rows `relative_index` of the tables. Both tables have 2m + 1 rows. Source:
    Shaw et al. 2018, eq. 3 and 4 (their a^K and a^V), computed as in eq. 5. Raises ValueError for
    tables without a middle row, or of unequal lengths.
    """
    rows = len(key_table)
    if rows % 2 == 0 or rows != len(value_table):
        raise ValueError("both tables need the same odd number of rows")
    index = relative_index(q.shape[-2], k.shape[-2], (rows - 1) // 2).to(q.device)
    near_keys = k.unsqueeze(-3) + key_table[index]
    near_values = v.unsqueeze(-3) + value_table[index]
    scores = (near_keys @ q.unsqueeze(-1)).squeeze(-1) / q.shape[-1] ** 0.5
    weights = softmax(scores, mask)
    return (weights.unsqueeze(-2) @ near_values).squeeze(-2)


# %% positions/relative_attention | wrong | the values get no vectors of their distances
def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend to words and to how far away they stand, with a learned vector for each distance.

    s_ij = q_i . (k_j + a_ij) / sqrt(d_k);  o_i = sum_j softmax(s_i)_j (v_j + b_ij), where a_ij
    and b_ij are the rows `relative_index` of the tables. Both tables have 2m + 1 rows. Source:
    Shaw et al. 2018, eq. 3 and 4 (their a^K and a^V), computed as in eq. 5. Raises ValueError for
    tables without a middle row, or of unequal lengths.
    """
    m, rest = divmod(len(key_table) - 1, 2)
    if rest or len(key_table) != len(value_table):
        raise ValueError("tables")
    a = key_table[relative_index(q.shape[-2], k.shape[-2], m)]
    scores = dot_scores(q, k) + einsum(q, a, "... i d, i j d -> ... i j")
    return weighted_sum(softmax(scores / q.shape[-1] ** 0.5, mask), v)


# %% positions/relative_attention | wrong | only the words' scores are divided by the root
def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend to words and to how far away they stand, with a learned vector for each distance.

    s_ij = q_i . (k_j + a_ij) / sqrt(d_k);  o_i = sum_j softmax(s_i)_j (v_j + b_ij), where a_ij
    and b_ij are the rows `relative_index` of the tables. Both tables have 2m + 1 rows. Source:
    Shaw et al. 2018, eq. 3 and 4 (their a^K and a^V), computed as in eq. 5. Raises ValueError for
    tables without a middle row, or of unequal lengths.
    """
    m, rest = divmod(len(key_table) - 1, 2)
    if rest or len(key_table) != len(value_table):
        raise ValueError("tables")
    index = relative_index(q.shape[-2], k.shape[-2], m)
    scores = dot_scores(q, k) / q.shape[-1] ** 0.5
    scores = scores + einsum(q, key_table[index], "... i d, i j d -> ... i j")
    w = softmax(scores, mask)
    return w @ v + einsum(w, value_table[index], "... i j, i j d -> ... i d")


# %% positions/relative_attention | wrong | the tables are swapped
def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend to words and to how far away they stand, with a learned vector for each distance.

    s_ij = q_i . (k_j + a_ij) / sqrt(d_k);  o_i = sum_j softmax(s_i)_j (v_j + b_ij), where a_ij
    and b_ij are the rows `relative_index` of the tables. Both tables have 2m + 1 rows. Source:
    Shaw et al. 2018, eq. 3 and 4 (their a^K and a^V), computed as in eq. 5. Raises ValueError for
    tables without a middle row, or of unequal lengths.
    """
    # TODO: look up the row of each distance
    # TODO: score the words and their distances, and divide both by the root of the size
    # TODO: average the values, and the vectors of their distances, with the same weights
    m, rest = divmod(len(key_table) - 1, 2)
    if rest or len(key_table) != len(value_table):
        raise ValueError("tables")
    index = relative_index(q.shape[-2], k.shape[-2], m)
    scores = dot_scores(q, k) + einsum(q, value_table[index], "... i d, i j d -> ... i j")
    w = softmax(scores / q.shape[-1] ** 0.5, mask)
    return w @ v + einsum(w, key_table[index], "... i j, i j d -> ... i d")


# %% positions/relative_attention | wrong | the distances are turned round: index of key to query
def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend to words and to how far away they stand, with a learned vector for each distance.

    s_ij = q_i . (k_j + a_ij) / sqrt(d_k);  o_i = sum_j softmax(s_i)_j (v_j + b_ij), where a_ij
    and b_ij are the rows `relative_index` of the tables. Both tables have 2m + 1 rows. Source:
    Shaw et al. 2018, eq. 3 and 4 (their a^K and a^V), computed as in eq. 5. Raises ValueError for
    tables without a middle row, or of unequal lengths.
    """
    m, rest = divmod(len(key_table) - 1, 2)
    if rest or len(key_table) != len(value_table):
        raise ValueError("tables")
    index = relative_index(k.shape[-2], q.shape[-2], m).T
    scores = dot_scores(q, k) + einsum(q, key_table[index], "... i d, i j d -> ... i j")
    w = softmax(scores / q.shape[-1] ** 0.5, mask)
    return w @ v + einsum(w, value_table[index], "... i j, i j d -> ... i d")


# %% positions/relative_attention | wrong | the mask is not used
def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend to words and to how far away they stand, with a learned vector for each distance.

    s_ij = q_i . (k_j + a_ij) / sqrt(d_k);  o_i = sum_j softmax(s_i)_j (v_j + b_ij), where a_ij
    and b_ij are the rows `relative_index` of the tables. Both tables have 2m + 1 rows. Source:
    Shaw et al. 2018, eq. 3 and 4 (their a^K and a^V), computed as in eq. 5. Raises ValueError for
    tables without a middle row, or of unequal lengths.
    """
    m, rest = divmod(len(key_table) - 1, 2)
    if rest or len(key_table) != len(value_table):
        raise ValueError("tables")
    index = relative_index(q.shape[-2], k.shape[-2], m)
    a, b = key_table[index], value_table[index]
    scores = dot_scores(q, k) + einsum(q, a, "... i d, i j d -> ... i j")
    w = softmax(scores / q.shape[-1] ** 0.5)
    return w @ v + einsum(w, b, "... i j, i j d -> ... i d")


# %% positions/relative_attention | wrong | the greatest distance is the number of rows
def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend to words and to how far away they stand, with a learned vector for each distance.

    s_ij = q_i . (k_j + a_ij) / sqrt(d_k);  o_i = sum_j softmax(s_i)_j (v_j + b_ij), where a_ij
    and b_ij are the rows `relative_index` of the tables. Both tables have 2m + 1 rows. Source:
    Shaw et al. 2018, eq. 3 and 4 (their a^K and a^V), computed as in eq. 5. Raises ValueError for
    tables without a middle row, or of unequal lengths.
    """
    if len(key_table) % 2 == 0 or len(key_table) != len(value_table):
        raise ValueError("tables")
    index = relative_index(q.shape[-2], k.shape[-2], len(key_table)).clamp(max=len(key_table) - 1)
    scores = dot_scores(q, k) + einsum(q, key_table[index], "... i d, i j d -> ... i j")
    w = softmax(scores / q.shape[-1] ** 0.5, mask)
    return w @ v + einsum(w, value_table[index], "... i j, i j d -> ... i d")


# %% positions/relative_attention | wrong | tables without a middle row are not refused
def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend to words and to how far away they stand, with a learned vector for each distance.

    s_ij = q_i . (k_j + a_ij) / sqrt(d_k);  o_i = sum_j softmax(s_i)_j (v_j + b_ij), where a_ij
    and b_ij are the rows `relative_index` of the tables. Both tables have 2m + 1 rows. Source:
    Shaw et al. 2018, eq. 3 and 4 (their a^K and a^V), computed as in eq. 5. Raises ValueError for
    tables without a middle row, or of unequal lengths.
    """
    # TODO: look up the row of each distance
    # TODO: score the words and their distances, and divide both by the root of the size
    # TODO: average the values, and the vectors of their distances, with the same weights
    index = relative_index(q.shape[-2], k.shape[-2], len(key_table) // 2)
    index = index.clamp(max=len(key_table) - 1)
    scores = dot_scores(q, k) + einsum(q, key_table[index], "... i d, i j d -> ... i j")
    w = softmax(scores / q.shape[-1] ** 0.5, mask)
    return w @ v + einsum(w, value_table[index], "... i j, i j d -> ... i d")


# %% positions/relative_attention | wrong | value vectors are averaged over the distances without weights
def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend to words and to how far away they stand, with a learned vector for each distance.

    s_ij = q_i . (k_j + a_ij) / sqrt(d_k);  o_i = sum_j softmax(s_i)_j (v_j + b_ij), where a_ij
    and b_ij are the rows `relative_index` of the tables. Both tables have 2m + 1 rows. Source:
    Shaw et al. 2018, eq. 3 and 4 (their a^K and a^V), computed as in eq. 5. Raises ValueError for
    tables without a middle row, or of unequal lengths.
    """
    # TODO: look up the row of each distance
    # TODO: score the words and their distances, and divide both by the root of the size
    # TODO: average the values, and the vectors of their distances, with the same weights
    m, rest = divmod(len(key_table) - 1, 2)
    if rest or len(key_table) != len(value_table):
        raise ValueError("tables")
    index = relative_index(q.shape[-2], k.shape[-2], m)
    scores = dot_scores(q, k) + einsum(q, key_table[index], "... i d, i j d -> ... i j")
    w = softmax(scores / q.shape[-1] ** 0.5, mask)
    return w @ v + value_table[index].mean(1)


# %% positions/tree_distance | right | breadth-first search over an undirected graph
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    """Count the edges between each two words of a dependency tree.

    `heads[i]` is the word that word i depends on, -1 for the root. A_i being word i and all words
    above it, the path from i to j has as many edges as there are words in only one of A_i and A_j.
    Source: after Wang et al. 2019 ("Structural Position Representations"), whose distances have
    signs, and lead over the root unless an edge joins the two words. Raises ValueError for heads
    that are no tree.

    >>> tree_distance(torch.tensor([1, -1, 1]))
    tensor([[0, 1, 2],
            [1, 0, 1],
            [2, 1, 0]])
    """
    # TODO: refuse any number of roots but one
    # TODO: start at every word at once, with no word seen above it
    # TODO: note the word reached and climb to its head, staying at the root; n steps reach it
    # TODO: whoever has not arrived goes round in a circle
    # TODO: count the words that only one of the two has above it
    n = len(heads)
    parent = heads.tolist()
    if parent.count(-1) != 1 or any(not -1 <= h < n for h in parent):
        raise ValueError("exactly one word is the root, and heads are words")
    neighbours = {i: [] for i in range(n)}
    for i, h in enumerate(parent):
        if h >= 0:
            neighbours[i].append(h)
            neighbours[h].append(i)
    table = []
    for start in range(n):
        steps, queue = {start: 0}, [start]
        for word in queue:
            for other in neighbours[word]:
                if other not in steps:
                    steps[other] = steps[word] + 1
                    queue.append(other)
        if len(steps) < n:
            raise ValueError("some words cannot be reached: heads go round in a circle")
        table.append([steps[i] for i in range(n)])
    return torch.tensor(table)


# %% positions/tree_distance | wrong | every path leads over the root: sum of the depths
def depth(heads, i):
    d, steps = i, 0
    while heads[d] != -1:
        d = int(heads[d])
        steps += 1
        if steps > len(heads):
            raise ValueError("a circle")
    return steps


def tree_distance(heads):
    if int((heads == -1).sum()) != 1:
        raise ValueError("one root is needed")
    d = torch.tensor([depth(heads, i) for i in range(len(heads))])
    return (d[:, None] + d).fill_diagonal_(0)


# %% positions/tree_distance | wrong | difference of the depths
def tree_distance(heads):
    if int((heads == -1).sum()) != 1:
        raise ValueError("one root is needed")
    depths = []
    for i in range(len(heads)):
        d, at = 0, i
        while heads[at] >= 0:
            at, d = int(heads[at]), d + 1
            if d > len(heads):
                raise ValueError("no tree")
        depths.append(d)
    depths = torch.tensor(depths)
    return (depths[:, None] - depths[None, :]).abs()


# %% positions/tree_distance | wrong | counts the words on the path, not the edges
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    """Count the edges between each two words of a dependency tree.

    `heads[i]` is the word that word i depends on, -1 for the root. A_i being word i and all words
    above it, the path from i to j has as many edges as there are words in only one of A_i and A_j.
    Source: after Wang et al. 2019 ("Structural Position Representations"), whose distances have
    signs, and lead over the root unless an edge joins the two words. Raises ValueError for heads
    that are no tree.

    >>> tree_distance(torch.tensor([1, -1, 1]))
    tensor([[0, 1, 2],
            [1, 0, 1],
            [2, 1, 0]])
    """
    # TODO: refuse any number of roots but one
    # TODO: start at every word at once, with no word seen above it
    # TODO: note the word reached and climb to its head, staying at the root; n steps reach it
    # TODO: whoever has not arrived goes round in a circle
    # TODO: count the words that only one of the two has above it
    n = len(heads)
    if (heads == -1).sum() != 1:
        raise ValueError("one root")
    above = torch.eye(n, dtype=torch.bool)
    for i in range(n):
        at = i
        for _ in range(n):
            if heads[at] == -1:
                break
            at = int(heads[at])
            above[i, at] = True
        else:
            raise ValueError("circle")
    both = (above[:, None] != above[None, :]).sum(-1)
    return both + 1


# %% positions/tree_distance | wrong | two roots are not refused
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    """Count the edges between each two words of a dependency tree.

    `heads[i]` is the word that word i depends on, -1 for the root. A_i being word i and all words
    above it, the path from i to j has as many edges as there are words in only one of A_i and A_j.
    Source: after Wang et al. 2019 ("Structural Position Representations"), whose distances have
    signs, and lead over the root unless an edge joins the two words. Raises ValueError for heads
    that are no tree.

    >>> tree_distance(torch.tensor([1, -1, 1]))
    tensor([[0, 1, 2],
            [1, 0, 1],
            [2, 1, 0]])
    """
    n = len(heads)
    above = torch.eye(n, dtype=torch.bool)
    for i in range(n):
        at = i
        for _ in range(n):
            if heads[at] == -1:
                break
            at = int(heads[at])
            above[i, at] = True
        else:
            raise ValueError("circle")
    return (above[:, None] ^ above[None, :]).sum(-1)


# %% positions/tree_distance | wrong | a circle beside a sound root is not refused
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    """Count the edges between each two words of a dependency tree.

    `heads[i]` is the word that word i depends on, -1 for the root. A_i being word i and all words
    above it, the path from i to j has as many edges as there are words in only one of A_i and A_j.
    Source: after Wang et al. 2019 ("Structural Position Representations"), whose distances have
    signs, and lead over the root unless an edge joins the two words. Raises ValueError for heads
    that are no tree.

    >>> tree_distance(torch.tensor([1, -1, 1]))
    tensor([[0, 1, 2],
            [1, 0, 1],
            [2, 1, 0]])
    """
    n = len(heads)
    if (heads == -1).sum() != 1:
        raise ValueError("one root")
    above, at = torch.eye(n, dtype=torch.bool), torch.arange(n)
    for _ in range(n):
        at = torch.where(heads[at] < 0, at, heads[at])
        above[torch.arange(n), at] = True
    return (above[:, None] ^ above[None, :]).sum(-1)


# %% positions/tree_distance | wrong | climbs three heads at most
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    """Count the edges between each two words of a dependency tree.

    `heads[i]` is the word that word i depends on, -1 for the root. A_i being word i and all words
    above it, the path from i to j has as many edges as there are words in only one of A_i and A_j.
    Source: after Wang et al. 2019 ("Structural Position Representations"), whose distances have
    signs, and lead over the root unless an edge joins the two words. Raises ValueError for heads
    that are no tree.

    >>> tree_distance(torch.tensor([1, -1, 1]))
    tensor([[0, 1, 2],
            [1, 0, 1],
            [2, 1, 0]])
    """
    # TODO: refuse any number of roots but one
    # TODO: start at every word at once, with no word seen above it
    # TODO: note the word reached and climb to its head, staying at the root; n steps reach it
    # TODO: whoever has not arrived goes round in a circle
    # TODO: count the words that only one of the two has above it
    n = len(heads)
    if (heads == -1).sum() != 1:
        raise ValueError("one root")
    root = int((heads == -1).nonzero())
    above, at = torch.eye(n, dtype=torch.bool), torch.arange(n)
    for _ in range(3):
        at = torch.where(heads[at] < 0, at, heads[at])
        above[torch.arange(n), at] = True
    for _ in range(n):
        at = torch.where(heads[at] < 0, at, heads[at])
    if (at != root).any():
        raise ValueError("circle")
    return (above[:, None] ^ above[None, :]).sum(-1)


# %% positions/tree_distance | wrong | words apart in the sentence, not in the tree
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    """Count the edges between each two words of a dependency tree.

    `heads[i]` is the word that word i depends on, -1 for the root. A_i being word i and all words
    above it, the path from i to j has as many edges as there are words in only one of A_i and A_j.
    Source: after Wang et al. 2019 ("Structural Position Representations"), whose distances have
    signs, and lead over the root unless an edge joins the two words. Raises ValueError for heads
    that are no tree.

    >>> tree_distance(torch.tensor([1, -1, 1]))
    tensor([[0, 1, 2],
            [1, 0, 1],
            [2, 1, 0]])
    """
    n = len(heads)
    if (heads == -1).sum() != 1:
        raise ValueError("one root")
    at = torch.arange(n)
    for _ in range(n):
        at = torch.where(heads[at] < 0, at, heads[at])
    if (heads[at] != -1).any():
        raise ValueError("circle")
    places = torch.arange(n)
    return (places[:, None] - places).abs()


# %% positions/tree_distance | wrong | a circle makes it run round without end, cut off by RecursionError
def tree_distance(heads):
    n = len(heads)
    if int((heads == -1).sum()) != 1:
        raise ValueError("one root")

    def chain(i):
        return {i} if heads[i] == -1 else {i} | chain(int(heads[i]))

    chains = [chain(i) for i in range(n)]
    return torch.tensor([[len(a ^ b) for b in chains] for a in chains])


# %% positions/rotary | right | complex multiplication of the two halves
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    """Turn queries or keys by angles that grow with their positions.

    Columns c and c + d / 2 are a point of the plane, turned by a = i / base^(2c / d):
    (x_c cos a - x_(c + d/2) sin a, x_c sin a + x_(c + d/2) cos a), with c from 0. Lengths stay, and
    dot products depend on i - j alone. The result has the type of x, but the angles are computed
    in float32 at least: bfloat16 cannot tell position 4001 from 4000. Source: Su et al. 2021,
    section 3.2, who pair the columns 2c and 2c + 1. Raises ValueError for an odd d.
    """
    half, odd = divmod(x.shape[-1], 2)
    if odd:
        raise ValueError("columns are turned in pairs")
    exact = torch.float64
    angle = positions.to(exact)[:, None] / base ** (torch.arange(half, dtype=exact, device=x.device) / half)
    points = torch.complex(x[..., :half].to(exact), x[..., half:].to(exact))
    turned = points * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([turned.real, turned.imag], dim=-1).to(x.dtype)


# %% positions/rotary | wrong | pairs the columns 2c and 2c + 1, as the paper does
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    """Turn queries or keys by angles that grow with their positions.

    Columns c and c + d / 2 are a point of the plane, turned by a = i / base^(2c / d):
    (x_c cos a - x_(c + d/2) sin a, x_c sin a + x_(c + d/2) cos a), with c from 0. Lengths stay, and
    dot products depend on i - j alone. The result has the type of x, but the angles are computed
    in float32 at least: bfloat16 cannot tell position 4001 from 4000. Source: Su et al. 2021,
    section 3.2, who pair the columns 2c and 2c + 1. Raises ValueError for an odd d.
    """
    if x.shape[-1] % 2:
        raise ValueError("odd d")
    a = positions[:, None].float() / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    cos, sin = a.cos().to(x.dtype), a.sin().to(x.dtype)
    one, two = x[..., 0::2], x[..., 1::2]
    return torch.stack([one * cos - two * sin, one * sin + two * cos], dim=-1).flatten(-2)


# %% positions/rotary | wrong | turns the other way round
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    """Turn queries or keys by angles that grow with their positions.

    Columns c and c + d / 2 are a point of the plane, turned by a = i / base^(2c / d):
    (x_c cos a - x_(c + d/2) sin a, x_c sin a + x_(c + d/2) cos a), with c from 0. Lengths stay, and
    dot products depend on i - j alone. The result has the type of x, but the angles are computed
    in float32 at least: bfloat16 cannot tell position 4001 from 4000. Source: Su et al. 2021,
    section 3.2, who pair the columns 2c and 2c + 1. Raises ValueError for an odd d.
    """
    # TODO: find the angle of each pair at each position
    # TODO: turn each pair, its first entry from the left half and its second from the right half
    if x.shape[-1] % 2:
        raise ValueError("odd d")
    a = positions[:, None].double() / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    cos, sin = a.cos().to(x.dtype), a.sin().to(x.dtype)
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * cos + two * sin, two * cos - one * sin], dim=-1)


# %% positions/rotary | wrong | angles in the type of x, which is too coarse in bfloat16
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    """Turn queries or keys by angles that grow with their positions.

    Columns c and c + d / 2 are a point of the plane, turned by a = i / base^(2c / d):
    (x_c cos a - x_(c + d/2) sin a, x_c sin a + x_(c + d/2) cos a), with c from 0. Lengths stay, and
    dot products depend on i - j alone. The result has the type of x, but the angles are computed
    in float32 at least: bfloat16 cannot tell position 4001 from 4000. Source: Su et al. 2021,
    section 3.2, who pair the columns 2c and 2c + 1. Raises ValueError for an odd d.
    """
    if x.shape[-1] % 2:
        raise ValueError("odd d")
    c = torch.arange(0, x.shape[-1], 2, device=x.device).to(x.dtype)
    a = positions.to(x.dtype)[:, None] / base ** (c / x.shape[-1])
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * a.cos() - two * a.sin(), one * a.sin() + two * a.cos()], dim=-1)


# %% positions/rotary | wrong | the result is float32 whatever x is
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    """Turn queries or keys by angles that grow with their positions.

    Columns c and c + d / 2 are a point of the plane, turned by a = i / base^(2c / d):
    (x_c cos a - x_(c + d/2) sin a, x_c sin a + x_(c + d/2) cos a), with c from 0. Lengths stay, and
    dot products depend on i - j alone. The result has the type of x, but the angles are computed
    in float32 at least: bfloat16 cannot tell position 4001 from 4000. Source: Su et al. 2021,
    section 3.2, who pair the columns 2c and 2c + 1. Raises ValueError for an odd d.
    """
    if x.shape[-1] % 2:
        raise ValueError("odd d")
    a = positions[:, None].float() / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    one, two = x.float().chunk(2, dim=-1)
    return torch.cat([one * a.cos() - two * a.sin(), one * a.sin() + two * a.cos()], dim=-1)


# %% positions/rotary | wrong | ignores the positions and counts from 0
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    """Turn queries or keys by angles that grow with their positions.

    Columns c and c + d / 2 are a point of the plane, turned by a = i / base^(2c / d):
    (x_c cos a - x_(c + d/2) sin a, x_c sin a + x_(c + d/2) cos a), with c from 0. Lengths stay, and
    dot products depend on i - j alone. The result has the type of x, but the angles are computed
    in float32 at least: bfloat16 cannot tell position 4001 from 4000. Source: Su et al. 2021,
    section 3.2, who pair the columns 2c and 2c + 1. Raises ValueError for an odd d.
    """
    if x.shape[-1] % 2:
        raise ValueError("odd d")
    i = torch.arange(x.shape[-2])[:, None]
    a = i / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    cos, sin = a.cos().to(x.dtype), a.sin().to(x.dtype)
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * cos - two * sin, one * sin + two * cos], dim=-1)


# %% positions/rotary | wrong | the base is fixed at 10000
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    """Turn queries or keys by angles that grow with their positions.

    Columns c and c + d / 2 are a point of the plane, turned by a = i / base^(2c / d):
    (x_c cos a - x_(c + d/2) sin a, x_c sin a + x_(c + d/2) cos a), with c from 0. Lengths stay, and
    dot products depend on i - j alone. The result has the type of x, but the angles are computed
    in float32 at least: bfloat16 cannot tell position 4001 from 4000. Source: Su et al. 2021,
    section 3.2, who pair the columns 2c and 2c + 1. Raises ValueError for an odd d.
    """
    if x.shape[-1] % 2:
        raise ValueError("odd d")
    a = positions[:, None].float() / 10000 ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    cos, sin = a.cos().to(x.dtype), a.sin().to(x.dtype)
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * cos - two * sin, one * sin + two * cos], dim=-1)


# %% positions/rotary | wrong | adds the sinusoids instead of turning
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    """Turn queries or keys by angles that grow with their positions.

    Columns c and c + d / 2 are a point of the plane, turned by a = i / base^(2c / d):
    (x_c cos a - x_(c + d/2) sin a, x_c sin a + x_(c + d/2) cos a), with c from 0. Lengths stay, and
    dot products depend on i - j alone. The result has the type of x, but the angles are computed
    in float32 at least: bfloat16 cannot tell position 4001 from 4000. Source: Su et al. 2021,
    section 3.2, who pair the columns 2c and 2c + 1. Raises ValueError for an odd d.
    """
    if x.shape[-1] % 2:
        raise ValueError("odd d")
    a = positions[:, None].float() / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    return x + torch.cat([a.sin(), a.cos()], dim=-1).to(x.dtype)


# %% positions/rotary | wrong | the second half is made of the half already turned
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    """Turn queries or keys by angles that grow with their positions.

    Columns c and c + d / 2 are a point of the plane, turned by a = i / base^(2c / d):
    (x_c cos a - x_(c + d/2) sin a, x_c sin a + x_(c + d/2) cos a), with c from 0. Lengths stay, and
    dot products depend on i - j alone. The result has the type of x, but the angles are computed
    in float32 at least: bfloat16 cannot tell position 4001 from 4000. Source: Su et al. 2021,
    section 3.2, who pair the columns 2c and 2c + 1. Raises ValueError for an odd d.
    """
    if x.shape[-1] % 2:
        raise ValueError("odd d")
    a = positions[:, None].float() / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    cos, sin = a.cos().to(x.dtype), a.sin().to(x.dtype)
    one, two = x.chunk(2, dim=-1)
    one = one * cos - two * sin
    two = one * sin + two * cos
    return torch.cat([one, two], dim=-1)


# %% positions/rotary | wrong | exponent c / d instead of 2c / d
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    """Turn queries or keys by angles that grow with their positions.

    Columns c and c + d / 2 are a point of the plane, turned by a = i / base^(2c / d):
    (x_c cos a - x_(c + d/2) sin a, x_c sin a + x_(c + d/2) cos a), with c from 0. Lengths stay, and
    dot products depend on i - j alone. The result has the type of x, but the angles are computed
    in float32 at least: bfloat16 cannot tell position 4001 from 4000. Source: Su et al. 2021,
    section 3.2, who pair the columns 2c and 2c + 1. Raises ValueError for an odd d.
    """
    half = x.shape[-1] // 2
    if x.shape[-1] % 2:
        raise ValueError("odd d")
    a = positions[:, None].float() / base ** (torch.arange(half) / x.shape[-1])
    cos, sin = a.cos().to(x.dtype), a.sin().to(x.dtype)
    one, two = x[..., :half], x[..., half:]
    return torch.cat([one * cos - two * sin, one * sin + two * cos], dim=-1)


# %% positions/alibi | right | a list comprehension over heads, queries and keys
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    """Make scores fall with distance, in each head at its own rate: -2^(-8h / heads) abs(i - j).

    h counts from 1, and the queries are the last n_q of the n_k keys. To be added to the scores;
    nothing is learned. Source: Press et al. 2022, section 3, for causal attention; here the words
    to the right are treated like those to the left. Raises ValueError unless `heads` is a power
    of two.
    """
    # TODO: give each head its slope, from steep to flat
    # TODO: measure the distances, the last query standing at the last key
    # TODO: take the distances off the scores, in each head multiplied by its slope
    if heads < 1 or bin(heads).count("1") != 1:
        raise ValueError(f"{heads} is no power of two")
    first = n_k - n_q
    return torch.stack(
        [
            torch.tensor(
                [[-(2.0 ** (-8 * h / heads)) * abs(i - j) for j in range(n_k)] for i in range(first, n_k)]
            ).reshape(n_q, n_k)
            for h in range(1, heads + 1)
        ]
    )


# %% positions/alibi | wrong | the handicap is positive
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    """Make scores fall with distance, in each head at its own rate: -2^(-8h / heads) abs(i - j).

    h counts from 1, and the queries are the last n_q of the n_k keys. To be added to the scores;
    nothing is learned. Source: Press et al. 2022, section 3, for causal attention; here the words
    to the right are treated like those to the left. Raises ValueError unless `heads` is a power
    of two.
    """
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads")
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    d = (torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)).abs()
    return slopes[:, None, None] * d


# %% positions/alibi | wrong | heads count from 0
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    """Make scores fall with distance, in each head at its own rate: -2^(-8h / heads) abs(i - j).

    h counts from 1, and the queries are the last n_q of the n_k keys. To be added to the scores;
    nothing is learned. Source: Press et al. 2022, section 3, for causal attention; here the words
    to the right are treated like those to the left. Raises ValueError unless `heads` is a power
    of two.
    """
    # TODO: give each head its slope, from steep to flat
    # TODO: measure the distances, the last query standing at the last key
    # TODO: take the distances off the scores, in each head multiplied by its slope
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads")
    slopes = 2.0 ** (-8 * torch.arange(heads) / heads)
    d = (torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)).abs()
    return -slopes[:, None, None] * d


# %% positions/alibi | wrong | slopes 2^-h, right for eight heads only
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    """Make scores fall with distance, in each head at its own rate: -2^(-8h / heads) abs(i - j).

    h counts from 1, and the queries are the last n_q of the n_k keys. To be added to the scores;
    nothing is learned. Source: Press et al. 2022, section 3, for causal attention; here the words
    to the right are treated like those to the left. Raises ValueError unless `heads` is a power
    of two.
    """
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads")
    slopes = 0.5 ** torch.arange(1, heads + 1)
    d = (torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)).abs()
    return -slopes[:, None, None] * d


# %% positions/alibi | wrong | the queries stand at the first keys
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    """Make scores fall with distance, in each head at its own rate: -2^(-8h / heads) abs(i - j).

    h counts from 1, and the queries are the last n_q of the n_k keys. To be added to the scores;
    nothing is learned. Source: Press et al. 2022, section 3, for causal attention; here the words
    to the right are treated like those to the left. Raises ValueError unless `heads` is a power
    of two.
    """
    # TODO: give each head its slope, from steep to flat
    # TODO: measure the distances, the last query standing at the last key
    # TODO: take the distances off the scores, in each head multiplied by its slope
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads")
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    d = (torch.arange(n_q)[:, None] - torch.arange(n_k)).abs()
    return -slopes[:, None, None] * d


# %% positions/alibi | wrong | distances with their sign
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    """Make scores fall with distance, in each head at its own rate: -2^(-8h / heads) abs(i - j).

    h counts from 1, and the queries are the last n_q of the n_k keys. To be added to the scores;
    nothing is learned. Source: Press et al. 2022, section 3, for causal attention; here the words
    to the right are treated like those to the left. Raises ValueError unless `heads` is a power
    of two.
    """
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads")
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    d = torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)
    return -slopes[:, None, None] * d


# %% positions/alibi | wrong | the words to the right get minus infinity
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    """Make scores fall with distance, in each head at its own rate: -2^(-8h / heads) abs(i - j).

    h counts from 1, and the queries are the last n_q of the n_k keys. To be added to the scores;
    nothing is learned. Source: Press et al. 2022, section 3, for causal attention; here the words
    to the right are treated like those to the left. Raises ValueError unless `heads` is a power
    of two.
    """
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads")
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    d = torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)
    bias = -slopes[:, None, None] * d.abs()
    return bias.masked_fill(d < 0, -torch.inf)


# %% positions/alibi | wrong | three heads are not refused
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    """Make scores fall with distance, in each head at its own rate: -2^(-8h / heads) abs(i - j).

    h counts from 1, and the queries are the last n_q of the n_k keys. To be added to the scores;
    nothing is learned. Source: Press et al. 2022, section 3, for causal attention; here the words
    to the right are treated like those to the left. Raises ValueError unless `heads` is a power
    of two.
    """
    slopes = torch.tensor([2 ** (-8 * h / heads) for h in range(1, heads + 1)])
    d = (torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)).abs()
    return -slopes[:, None, None] * d


# %% positions/alibi | wrong | every even number of heads passes
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    """Make scores fall with distance, in each head at its own rate: -2^(-8h / heads) abs(i - j).

    h counts from 1, and the queries are the last n_q of the n_k keys. To be added to the scores;
    nothing is learned. Source: Press et al. 2022, section 3, for causal attention; here the words
    to the right are treated like those to the left. Raises ValueError unless `heads` is a power
    of two.
    """
    if heads % 2 and heads != 1:
        raise ValueError("heads")
    slopes = torch.tensor([2 ** (-8 * h / heads) for h in range(1, heads + 1)])
    d = (torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)).abs()
    return -slopes[:, None, None] * d


# %% positions/alibi | wrong | integer division: -8h // heads
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    """Make scores fall with distance, in each head at its own rate: -2^(-8h / heads) abs(i - j).

    h counts from 1, and the queries are the last n_q of the n_k keys. To be added to the scores;
    nothing is learned. Source: Press et al. 2022, section 3, for causal attention; here the words
    to the right are treated like those to the left. Raises ValueError unless `heads` is a power
    of two.
    """
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads")
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) // heads)
    d = (torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)).abs()
    return -slopes[:, None, None] * d
