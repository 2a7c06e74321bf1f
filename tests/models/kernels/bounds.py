"""Under Triton's interpreter: every load and store lies inside a tensor of its launch, and every hint is true.

A GPU forgives what reads a little past its buffer, until the buffer is the last one in mapped memory.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from triton.runtime import interpreter
from triton.runtime.interpreter import GridExecutor, InterpreterBuilder, TensorHandle

_patch = interpreter._patch_lang_tensor


def _patch_with_counts(tensor: Any, scope: Any) -> None:
    """The interpreter cannot count to a number that a kernel is given, with a recent NumPy."""
    _patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


interpreter._patch_lang_tensor = _patch_with_counts

HINTS = ("tt.divisibility", "tt.contiguity", "tt.constancy")


@contextlib.contextmanager
def watched() -> Iterator[Counter[str]]:
    """Inside, a kernel that leaves its tensors, or a hint that is not true, raises; how often each was launched."""
    launches: Counter[str] = Counter()
    launch = _Launch()
    as_given, load, store = (
        GridExecutor._init_args_hst, InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store
    )  # fmt: skip
    tell = TensorHandle.set_attr

    def begin(self: Any, args: Any, kwargs: Any) -> Any:
        found = as_given(self, args, kwargs)
        launch.begin(self.fn.__name__, dict(zip(self.arg_names, found[0])) | found[1])
        launches[self.fn.__name__] += 1
        return found

    def checked_load(self: Any, ptrs: Any, mask: Any, *rest: Any) -> Any:
        launch.check("reads", ptrs, mask)
        return load(self, ptrs, mask, *rest)

    def checked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        launch.check("writes", ptrs, mask)
        return store(self, ptrs, value, mask, *rest)

    def checked_hint(self: Any, name: str, sizes: list[int]) -> None:
        launch.check_hint(name, self.data, sizes)
        tell(self, name, sizes)

    with (
        patch.object(GridExecutor, "_init_args_hst", begin),
        patch.object(InterpreterBuilder, "create_masked_load", checked_load),
        patch.object(InterpreterBuilder, "create_masked_store", checked_store),
        patch.object(TensorHandle, "set_attr", checked_hint),
    ):
        yield launches


class _Launch:
    """One kernel with the tensors that it was given."""

    def begin(self, name: str, given: dict[str, Any]) -> None:
        self.name = name
        self.tensors = {key: _extent(one) for key, one in given.items() if isinstance(one, torch.Tensor)}
        ends = sorted(self.tensors.values())
        self.begins, self.ends = (np.array(side, dtype=np.int64) for side in zip(*ends))
        # tensors may overlap: the furthest end so far is what counts
        self.ends = np.maximum.accumulate(self.ends)

    def check(self, does: str, ptrs: Any, mask: Any) -> None:
        places = np.broadcast_to(ptrs.data, np.broadcast_shapes(ptrs.data.shape, mask.data.shape))
        asked = np.broadcast_to(mask.data, places.shape).astype(bool)
        address, size = places[asked].astype(np.int64), ptrs.get_element_ty().primitive_bitwidth // 8
        tensor = np.searchsorted(self.begins, address, side="right") - 1
        outside = (tensor < 0) | (address + size > self.ends[tensor])
        if outside.any():
            raise IndexError(f"{self.name} {does} {self._where(int(address[outside][-1]), size)}")

    def check_hint(self, name: str, values: Any, sizes: list[int]) -> None:
        axis = len(sizes) - 1
        size = int(sizes[axis])
        if name not in HINTS or values.ndim != len(sizes) or size <= 1:
            return
        assert values.shape[axis] % size == 0, f"{self.name}: a hint of {size} for {values.shape[axis]} values"
        groups = values.reshape(*values.shape[:-1], -1, size)
        if name == "tt.divisibility":
            true = (groups[..., 0] % size == 0).all()
        else:
            true = (groups == groups[..., :1] + (np.arange(size) if name == "tt.contiguity" else 0)).all()
        if not true:
            raise ValueError(f"{self.name} tells the compiler an untrue {name} of {size}")

    def _where(self, address: int, size: int) -> str:
        def away(extent: tuple[int, int]) -> int:
            return max(extent[0] - address, address + size - extent[1])

        name, (begin, end) = min(self.tensors.items(), key=lambda item: away(item[1]))
        return f"{away((begin, end))} bytes outside of {name}, which has {end - begin}"


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses from a tensor's first value to the end of its last; an expanded one has fewer than it seems."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    begin = tensor.data_ptr()
    return begin, begin + (last + 1) * tensor.element_size() if tensor.numel() else begin
