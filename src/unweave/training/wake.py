"""What a training on a GPU needs and nobody has to wait for: begun while other things are done."""

import contextlib
import threading

import torch


def wake(device: str) -> threading.Thread | None:
    """Begin with a GPU's context and with Triton, beside what the caller does next; on a CPU, nothing.

    Nobody needs to wait for it: whoever uses the card or Triton meanwhile finds them begun, and waits for what is left.
    """
    if not device.startswith("cuda"):
        return None
    waking = threading.Thread(target=_wake, args=(device,), name="wake")
    waking.start()
    return waking


def _wake(device: str) -> None:
    # who trains meets any error again, and answers it
    with contextlib.suppress(Exception):
        torch.zeros(1, device=device)
    with contextlib.suppress(Exception):
        from triton.runtime.cache import triton_key

        triton_key()  # a checksum of all of Triton, 0.25 s, which its first kernel asks for and which is kept
