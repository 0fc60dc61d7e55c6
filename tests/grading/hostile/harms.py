# ruff: noqa
"""Answers that break what they run in, and would break what runs after them."""

# %% a segmentation fault
import ctypes


def dot_scores(q, k):
    ctypes.string_at(0)


# %% the process ends
import os


def dot_scores(q, k):
    os._exit(0)


# %% the process ends politely
def dot_scores(q, k):
    raise SystemExit("0")


# %% the reader's own interrupt
def dot_scores(q, k):
    raise KeyboardInterrupt


# %% the process ends while the answer is defined
import sys


@sys.exit
def dot_scores(q, k):
    return None


# %% a loop without end
def dot_scores(q, k):
    while True:  # for ever
        pass


# %% a loop without end while the answer is defined
class Forever:
    while True:  # for ever
        pass


def dot_scores(q, k):
    return Forever


# %% a recursion without end
def dot_scores(q, k):
    return dot_scores(q, k)


# %% a recursion through the stack's end
import sys


def dot_scores(q, k):
    sys.setrecursionlimit(10**9)
    return dot_scores(*[q, k])


# %% a sleep that no signal ends
import signal, time


def dot_scores(q, k):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            continue
    # for ever, as far as the judge is concerned
    time.sleep(1000)


# %% an error with a huge message
def dot_scores(q, k):
    raise ValueError("x" * 2**25)


# %% an error whose message raises
class Broken(Exception):
    def __str__(self):
        raise self


def dot_scores(q, k):
    raise Broken


# %% an error whose message ends the process
class Broken(Exception):
    def __str__(self):
        raise SystemExit


def dot_scores(q, k):
    raise Broken


# %% an error whose message is another's page
def dot_scores(q, k):
    raise ValueError("<script>alert(1)</script>\n=HYPERLINK(1)\x1b[2J\x00")


# %% more memory than there is
def dot_scores(q, k):
    return bytearray(2**40)


# %% memory piece by piece
import torch


def dot_scores(q, k):
    kept = []
    while True:
        kept.append(torch.empty(2**26))


# %% more output than anybody reads
import sys


def dot_scores(q, k):
    print("x" * 10**7)
    sys.stderr.write("x" * 10**7)
    return None


# %% a result larger than a message
import torch


def dot_scores(q, k):
    return torch.zeros(2**25)


# %% results that fill the judge's memory
import torch


def dot_scores(q, k):
    return torch.zeros(2**23)


# %% every descriptor is taken
import os


def dot_scores(q, k):
    while True:
        os.dup(0)


# %% every descriptor is closed
import os


def dot_scores(q, k):
    os.closerange(0, 1000)


# %% a thousand threads
import threading, time


def dot_scores(q, k):
    for _ in range(1000):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()


# %% a fork bomb
import os


def dot_scores(q, k):
    while True:
        os.fork()


# %% a thread that stays, and spoils torch for the next answer
import threading, torch


def spoil():
    while True:  # for ever
        torch.Tensor.__matmul__ = torch.matmul = torch.einsum = lambda *a: None


def dot_scores(q, k):
    threading.Thread(target=spoil, daemon=True).start()


# %% a thread that stays, and speaks for the next answer
import os, threading, time


def spoil():
    while True:
        time.sleep(0.001)
        os.write(4, b"\0\0\0\2{}")


def dot_scores(q, k):
    threading.Thread(target=spoil, daemon=True).start()


# %% torch is left broken
import torch


def dot_scores(q, k):
    torch.Tensor.__matmul__ = torch.matmul = torch.einsum = lambda *a: None


# %% the settings of torch are left changed
import torch


def dot_scores(q, k):
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    torch.autograd.set_detect_anomaly(True)
    torch.manual_seed(0)


# %% built-in functions are left broken
import builtins


def dot_scores(q, k):
    builtins.len = builtins.isinstance = builtins.type = None


# %% modules are left empty
import sys


def dot_scores(q, k):
    sys.modules.clear()


# %% an alarm rings later
import signal


def dot_scores(q, k):
    signal.setitimer(signal.ITIMER_REAL, 0.01)


# %% a result whose gradient fails
import torch


def refuse(gradient):
    raise SystemExit


def dot_scores(q, k):
    found = torch.zeros(q.shape[-2], k.shape[-2], requires_grad=True) + 0
    found.register_hook(refuse)
    return found
