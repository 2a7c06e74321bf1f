"""Compile kernels for an H200 on a machine without one: registers, stack and shared memory of every launch.

    with for_a_card() as launches:
        down(join, big, weights, "ieee")     # tensors on the CPU; nothing is computed
    print(*launches, sep="\\n")

What a launch needs says how many of its programs share a multiprocessor, which has 65,536 registers and 227 KB.
"""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

REGISTERS, SHARED, THREADS = 65_536, 227 * 1024, 2048
"""Of a multiprocessor of an H200."""
HERE = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


@dataclass(frozen=True)
class Launch:
    """One kernel as compiled for compute capability 9.0."""

    name: str
    programs: int
    warps: int
    registers: int
    stack: int
    shared: int
    kernel: Any

    @property
    def side_by_side(self) -> int:
        """Programs that one multiprocessor holds at a time."""
        each = 32 * self.warps
        # registers are given to warps in portions of 256
        by_registers = REGISTERS // (self.warps * -(-self.registers * 32 // 256) * 256)
        return min(by_registers, SHARED // (self.shared + 1024), THREADS // each, 32)

    def sass(self) -> str:
        """The machine code."""
        return _tool("nvdisasm", "-c", binary=self.kernel.asm["cubin"])

    def __str__(self) -> str:
        needs = f"{self.registers:3d} registers, stack {self.stack:4d}, shared {self.shared / 1024:5.1f} KB"
        beside = f"{self.side_by_side:2d} programs side by side of {self.programs}"
        return f"{self.name:24s} {self.warps} warps, {needs}, {beside}"


class _Card:
    """As much of a driver as compiling asks for."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return device


@contextmanager
def for_a_card() -> Iterator[list[Launch]]:
    """Inside, kernels are compiled and not run; the list grows with every launch of a kernel not seen before."""
    launches: list[Launch] = []
    plain, seen = JITFunction.run, set()

    def compiled(self: Any, *given: Any, grid: Any, warmup: bool, **named: Any) -> None:
        kernel = plain(self, *given, grid=grid, warmup=True, **named)
        if kernel.hash not in seen:
            seen.add(kernel.hash)
            launches.append(_launch(kernel, grid[0]))

    with patch.object(driver, "_active", _Card()), patch.object(JITFunction, "run", compiled):
        yield launches


def _launch(kernel: Any, programs: int) -> Launch:
    used = _tool("cuobjdump", "-res-usage", binary=kernel.asm["cubin"])
    found = re.search(r"REG:(\d+) STACK:(\d+)", used)
    assert found is not None, used
    metadata = kernel.metadata
    registers, stack = int(found[1]), int(found[2])
    return Launch(metadata.name, programs, metadata.num_warps, registers, stack, metadata.shared, kernel)


def _tool(name: str, *options: str, binary: bytes) -> str:
    with TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(binary)
        return subprocess.run([HERE / name, *options, path], capture_output=True, text=True, check=True).stdout
