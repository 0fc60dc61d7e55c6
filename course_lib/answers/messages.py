"""Messages between processes: tensors and plain data, bounded, never pickle.

A message is four bytes (the length of its header), a JSON header, and the tensors' raw bytes.
"""

import dataclasses
import json
import math
from typing import Any, BinaryIO

import torch
from torch import Tensor

LIMIT = 16 * 2**20
DIMENSIONS = 64  # of which torch computes
HEADER_LIMIT = 4 * 2**20  # as JSON becomes objects of many times its size
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
        torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
        torch.complex128,
    )
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}


class TooLarge(ValueError):
    """A message over the limit of 16 MiB."""


class Malformed(ValueError):
    """Bytes that are no message."""


def send(stream: BinaryIO, message: Any) -> None:
    """Write one message. Raises TooLarge before anything is written, TypeError for odd data."""
    stream.write(encoded(message))
    stream.flush()


def encoded(message: Any) -> bytes:
    """Return the bytes of one message. Raises TooLarge, TypeError for odd data."""
    blobs: list[bytes] = []
    header = json.dumps(_pack(message, blobs)).encode()
    if len(header) > HEADER_LIMIT:
        raise TooLarge(f"over {HEADER_LIMIT // 2**20} MiB beside its tensors")
    if len(header) + sum(map(len, blobs)) > LIMIT:
        raise TooLarge(f"over {LIMIT // 2**20} MiB")
    return b"".join([len(header).to_bytes(4, "big"), header, *blobs])


def receive(stream: BinaryIO, kinds: dict[str, type]) -> Any:
    """Read one message, whose dataclasses may be of these kinds only, by name.

    Raises EOFError where the stream has ended, TooLarge and Malformed for what is no message.
    """
    length = int.from_bytes(_read(stream, 4), "big")
    if length > HEADER_LIMIT:
        raise TooLarge(f"over {HEADER_LIMIT // 2**20} MiB beside its tensors")
    unpack = _Unpacker(stream, LIMIT - length, kinds)
    try:
        return unpack(json.loads(_read(stream, length)))
    except (EOFError, OSError, TooLarge):
        raise
    # a stranger wrote this: whatever else it leads to, in JSON or in torch, it is no message
    except Exception as error:
        raise Malformed(str(error)) from None


def _pack(value: Any, blobs: list[bytes]) -> Any:
    if value is None or isinstance(value, str) or type(value) in (bool, int, float):
        return value
    if isinstance(value, Tensor):
        if value.dtype not in NAMES:
            raise TypeError(f"a tensor of {value.dtype} cannot be sent")
        if not (meta := value.is_meta):
            if value.nbytes + sum(map(len, blobs)) > LIMIT:
                raise TooLarge(f"over {LIMIT // 2**20} MiB")
            # numpy has no bfloat16; whatever the strides, it writes row after row
            known = value.view(torch.int16) if value.dtype == torch.bfloat16 else value
            blobs.append(known.numpy(force=True).tobytes())
        return {"tensor": [NAMES[value.dtype], list(value.shape), meta]}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_pack(item, blobs) for item in value]}
    if type(value) is dict:
        return {"dict": [[str(key), _pack(item, blobs)] for key, item in value.items()]}
    if dataclasses.is_dataclass(value):
        fields = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        told = [[field.name, _pack(x, blobs)] for field, x in fields if x is not field.default]
        return {"kind": [type(value).__name__, told]}
    raise TypeError(f"a {type(value).__name__} cannot be sent")


class _Unpacker:
    def __init__(self, stream: BinaryIO, room: int, kinds: dict[str, type]):
        self.stream, self.room, self.kinds = stream, room, kinds

    def __call__(self, packed: Any) -> Any:
        if not isinstance(packed, dict):
            return packed
        [(tag, content)] = packed.items()
        if tag == "tensor":
            return self.tensor(*content)
        if tag in ("list", "tuple"):
            return (list if tag == "list" else tuple)(self(item) for item in content)
        if tag == "dict":
            return {key: self(item) for key, item in content}
        name, fields = content
        return self.kinds[name](**{key: self(item) for key, item in fields})

    def tensor(self, dtype: str, shape: list[int], meta: bool) -> Tensor:
        if len(shape) > DIMENSIONS or any(type(size) is not int or size < 0 for size in shape):
            raise Malformed("a tensor of no shape")
        if meta:
            return torch.empty(shape, dtype=DTYPES[dtype], device="meta")
        size = math.prod(shape) * DTYPES[dtype].itemsize
        self.room -= size
        if self.room < 0:
            raise TooLarge(f"over {LIMIT // 2**20} MiB")
        if size == 0:
            return torch.empty(shape, dtype=DTYPES[dtype])
        data = bytearray(_read(self.stream, size))
        if dtype == "bool":  # only 0 and 1 are truth values, whatever the bytes say
            return torch.frombuffer(data, dtype=torch.uint8).bool().view(shape)
        return torch.frombuffer(data, dtype=DTYPES[dtype]).view(shape)


def _read(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError("the stream ended inside a message")
    return data
