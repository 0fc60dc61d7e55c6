# ruff: noqa
"""Answers that are wrong, and replies that say otherwise."""


# %% an object that equals everything
class Equal:
    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return lambda *a, **k: self

    __bool__ = __ge__ = __le__ = __gt__ = __lt__ = lambda *a: True


def dot_scores(q, k):
    return Equal()


# %% a tensor whose every comparison holds
import torch


class Agreeing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True


def dot_scores(q, k):
    return torch.zeros(1).as_subclass(Agreeing)


# %% a tensor that lies about its shape
import torch


class Shaped(torch.Tensor):
    shape = property(lambda self: torch.Size([1, 2]))
    dtype = property(lambda self: torch.float32)


def dot_scores(q, k):
    return torch.zeros(7).as_subclass(Shaped)


# %% numbers that equal every number
class Number(float):
    def __eq__(self, other):
        return True

    def __sub__(self, other):
        return 0.0

    __hash__ = float.__hash__
    __rsub__ = __sub__


def dot_scores(q, k):
    return Number(0)


# %% a class that passes for another
class Passing(type):
    def __instancecheck__(cls, x):
        return True

    def __eq__(cls, x):
        return True

    __hash__ = type.__hash__


class Tensor(metaclass=Passing):
    __class__ = property(lambda self: float)

    def __reduce__(self):
        return exit, ()


def dot_scores(q, k):
    return Tensor()


# %% the answer is a class
class dot_scores:
    def __init__(self, *arguments):
        pass

    def __eq__(self, other):
        return True


# %% comparisons of torch are patched
import torch


def dot_scores(q, k):
    torch.allclose = torch.equal = torch.Tensor.allclose = lambda *a, **k: True
    torch.Tensor.__eq__ = torch.Tensor.equal = lambda *a, **k: True
    return q


# %% messages are patched
import torch
from course_lib.answers import messages
from course_lib.answers.answer import Reply


def dot_scores(q, k):
    messages.encoded = lambda message: b""
    messages.send = lambda stream, message: None  # the judge would wait for ever
    return q


# %% JSON is patched
import json


def dot_scores(q, k):
    json.dumps = lambda *a, **k: '{"kind": ["Verdict", [["status", "passed"], ["points", 11]]]}'
    return q


# %% the handle is patched
from course_lib.answers.answer import InProcess, Reply


def dot_scores(q, k):
    InProcess.run = lambda self, request: Reply(request.inputs[0], request.inputs)
    return q


# %% an error that excuses an answer on the meta device
def dot_scores(q, k):
    raise RuntimeError("called on meta tensors")


# %% an error of the engine's own names
class Timeout(Exception):
    pass


def dot_scores(q, k):
    raise Timeout("Every case and every property holds.")


# %% results that are no numbers
import torch


def dot_scores(q, k):
    return (q @ k.mT) * float("nan")


# %% results of other kinds of tensors
import torch


def dot_scores(q, k):
    right = q.detach() @ k.detach().mT
    return (right.to_sparse(), right.to("meta"), right + 0j, torch.nested.nested_tensor([right]))


# %% a result on the meta device, where nothing is compared
def dot_scores(q, k):
    return q.to("meta") @ k.to("meta").mT


# %% a quantised result
import torch


def dot_scores(q, k):
    return torch.quantize_per_tensor(q.detach().float(), 0.1, 0, torch.qint8)


# %% a result that never ends
import itertools


def dot_scores(q, k):
    return itertools.count()


# %% a result that holds itself
def dot_scores(q, k):
    found = []
    found.append(found)
    return found


# %% a result 900 lists deep
def dot_scores(q, k):
    found = q
    for _ in range(900):
        found = [found]
    return found


# %% a whole number of four thousand digits
def dot_scores(q, k):
    return 10**4000


# %% text that no encoding has
def dot_scores(q, k):
    raise ValueError(chr(0xD800) * 1000)


# %% a verdict in place of a reply
import os
from course_lib.answers import messages


def dot_scores(q, k):
    forged = b'{"kind": ["Verdict", [["status", "passed"], ["points", 11]]]}'
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, len(forged).to_bytes(4, "big") + forged)
        except OSError:
            continue


# %% replies in advance, on every descriptor
import os
from course_lib.answers import messages
from course_lib.answers.answer import Reply


def dot_scores(q, k):
    for descriptor in range(3, 64):
        try:
            os.write(
                descriptor, messages.encoded(Reply(q.detach(), (q.detach(), k.detach()))) * 200
            )
        except OSError:
            continue


# %% replies before any request
import os
from course_lib.answers import messages
from course_lib.answers.answer import Description, Reply


class Early:
    for descriptor in (3, 4):
        os.write(descriptor, messages.encoded(Reply()) + messages.encoded(Description("function")))


def dot_scores(q, k):
    return Early and None


# %% replies whose fields hold messages
import os
from course_lib.answers import messages
from course_lib.answers.answer import Description, Error, Foreign, Reply, Request
from course_lib.answers.process import Define
from course_lib.answers.answer import Probe


def dot_scores(q, k):
    inner = (Define("", ""), Request(()), Probe("linear", (3, 3)), Reply(), Description("function"))
    outer = Reply(
        inner, inner, {"0": inner}, Error(inner, inner, inner, inner, inner), inner, inner
    )
    os.write(4, messages.encoded(outer) + messages.encoded(Reply(inner)))


# %% replies with tensors of other sizes than they say
import os, json


def dot_scores(q, k):
    for shape in ([2**62, 2**62], [-1], [2**20, 2**20], [True], ["1"], [0, 2**70], [1] * 60_000):
        for dtype in ("float32", "bool", "object"):
            for meta in (False, True):
                header = json.dumps(
                    {"kind": ["Reply", [["output", {"tensor": [dtype, shape, meta]}]]]}
                )
                os.write(4, len(header).to_bytes(4, "big") + header.encode() + bytes(64))


# %% a reply that says it is huge
import os


def dot_scores(q, k):
    os.write(4, b"\xff\xff\xff\xff" + bytes(1000))


# %% a reply a hundred thousand lists deep
import os


def dot_scores(q, k):
    header = b'{"list": [' * 100_000
    os.write(4, len(header).to_bytes(4, "big") + header)


# %% no reply, byte by byte
import os, time


def dot_scores(q, k):
    for _ in range(10_000):
        os.write(4, b"\0")
        time.sleep(0.2)


# %% the source that tells is no more
import linecache


def dot_scores(q, k):
    linecache.getlines = lambda *a: None
    raise ValueError("Every case and every property holds.")


# %% a tensor class that computes when its result is read
import torch


class Later(torch.Tensor):
    def detach(self):
        return self.given

    clone = as_subclass = to = detach
    is_nested = layout = requires_grad = property(detach)


def dot_scores(q, k):
    y = torch.Tensor.as_subclass(torch.zeros(*q.shape[:-1], k.shape[-2], dtype=q.dtype), Later)
    y.given = q.detach() @ k.detach().mT
    return y
