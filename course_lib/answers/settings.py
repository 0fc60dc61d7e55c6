"""What torch keeps for a whole process, kept apart: the learner's settings, and a check's own."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

# how each is looked up and set, and what a fresh process has; one thread is enough for tensors this
# small, where several would wait for each other
FRESH: tuple[tuple[Callable[[], Any], Callable[[Any], Any], Any], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype, torch.float32),
    (torch.get_num_threads, torch.set_num_threads, 1),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, 0),
    (torch.is_anomaly_enabled, torch.set_anomaly_enabled, False),
)


@contextlib.contextmanager
def fresh_settings() -> Iterator[None]:
    """Let torch be as in a fresh process inside, and as it was outside, random numbers included.

    Whoever has set another default device or type, or works without gradients, is judged like
    everybody else. As a decorator it does the same for the calls of a function.
    """
    with contextlib.ExitStack() as undo:
        undo.callback(torch.set_rng_state, torch.get_rng_state())
        for get, put, fresh in FRESH:
            undo.callback(put, get())
            put(fresh)
        device = torch.get_default_device()
        torch.set_default_device(None)
        if torch.get_default_device().type != "cpu":  # a `with` around the check says so
            undo.enter_context(torch.device("cpu"))
        elif device.type != "cpu":
            undo.callback(torch.set_default_device, device)
        undo.callback(torch.set_default_device, None)  # what was set inside
        if torch.is_inference_mode_enabled():
            undo.enter_context(torch.inference_mode(False))
        if torch.is_autocast_enabled("cpu"):
            undo.enter_context(torch.autocast("cpu", enabled=False))
        undo.enter_context(torch.enable_grad())
        yield


def settings() -> dict[str, Any]:
    """Look up what every later line of a program depends on."""
    return {
        "default device": torch.get_default_device(),
        "default dtype": torch.get_default_dtype(),
        "grad mode": torch.is_grad_enabled(),
        "random seed": torch.initial_seed(),
    }
