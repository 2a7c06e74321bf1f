"""Gluon kernels of a Hopper card, worked out with PyTorch on a CPU: every function that they call, in plain words.

Copies arrive at once, products are made when they are waited for, and what is sent to memory is read when that is
waited for: so a buffer that is used again too early gives wrong numbers. Waiting for what was never asked for, or in
the wrong phase, is an error here and would be a hang there. Layouts are not followed.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import math
from types import SimpleNamespace

import torch


class Memory:
    """A part of shared memory: a flat buffer, where it begins, its shape and the steps of its axes."""

    def __init__(self, flat, begin, shape, steps=None):
        self.flat, self.begin, self.shape = flat, begin, list(shape)
        self.steps = steps or [math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]

    def index(self, i):
        return Memory(self.flat, self.begin + int(i) * self.steps[0], self.shape[1:], self.steps[1:])

    def slice(self, start, length, dim=0):
        shape = [*self.shape[:dim], length, *self.shape[dim + 1 :]]
        return Memory(self.flat, self.begin + start * self.steps[dim], shape, self.steps)

    def _reinterpret(self, dtype, shape, layout):
        found = Memory(self.flat, self.begin, shape, layout.steps(shape) if isinstance(layout, Apart) else None)
        last = sum((size - 1) * step for size, step in zip(found.shape, found.steps))
        assert found.begin >= 0, "before the buffer"
        assert found.begin + last < len(self.flat), "beyond the buffer"
        return found

    def permute(self, order):
        return Memory(self.flat, self.begin, [self.shape[axis] for axis in order], [self.steps[axis] for axis in order])

    @property
    def values(self):
        return self.flat.as_strided(self.shape, self.steps, self.begin)

    def load(self, layout):
        return self.values.float()

    def store(self, value):
        self.values.copy_(value)


class Apart:
    """Shared memory whose rows stand apart by some values."""

    def __init__(self, pairs, shape, order):
        ((self.run, self.between),), self.order = pairs, order

    @classmethod
    def with_identity_for(cls, pairs, shape, order):
        return cls(pairs, shape, order)

    def steps(self, shape):
        quick, slow = self.order
        assert shape[quick] == self.run
        found = [1, 1]
        found[slow] = self.run + self.between
        return found


class Boxes:
    """A tensor in memory that is copied box by box; what lies outside is 0."""

    def __init__(self, base, shape, strides, block_shape, layout):
        self.view = base.view(-1).as_strided(shape, strides)
        self.block_shape, self.layout = block_shape, layout

    @classmethod
    def from_tensor(cls, tensor, block_shape, layout):
        return cls(tensor, tensor.shape, tensor.stride(), block_shape, layout)

    def inside(self, at):
        """The part of the tensor, and of the box, that both have."""
        spans = [(max(a, 0), min(a + b, n)) for a, b, n in zip(at, self.block_shape, self.view.shape)]
        return tuple(slice(*span) for span in spans), tuple(
            slice(low - a, high - a) for (low, high), a in zip(spans, at)
        )


class Pointer:
    """An address, or a block of them."""

    def __init__(self, tensor, at=0):
        self.tensor, self.at = tensor, at

    def __add__(self, other):
        return Pointer(self.tensor, self.at + other)


class Barrier:
    """Bytes that are still to come, and how often it was complete."""

    def __init__(self):
        self.missing, self.open, self.done = 0, False, 0

    def settle(self):
        if self.open and self.missing == 0:
            self.open, self.done = False, self.done + 1


class Machine:
    """One program at a time."""

    def __init__(self):
        self.program, self.barriers, self.products, self.sent = 0, {}, [], []

    def barrier(self, memory):
        return self.barriers[id(memory.flat), memory.begin]

    def init(self, memory, count):
        self.barriers[id(memory.flat), memory.begin] = Barrier()

    def expect(self, memory, n_bytes, pred=True):
        if pred:
            barrier = self.barrier(memory)
            assert not barrier.open, "asked for twice"
            barrier.open, barrier.missing = True, barrier.missing + n_bytes

    def wait(self, memory, phase):
        assert self.barrier(memory).done > 0, "a hang"
        assert (self.barrier(memory).done - 1) % 2 == int(phase), "a hang, or too late"

    def fetch(self, boxes, at, memory, target, pred=True):
        if not pred:
            return
        assert target.shape == list(boxes.block_shape), (target.shape, boxes.block_shape)
        there, here = boxes.inside([int(a) for a in at])
        target.values.zero_()
        target.values[here] = boxes.view[there].to(target.flat.dtype)
        barrier = self.barrier(memory)
        barrier.missing -= math.prod(target.shape) * target.flat.element_size()
        barrier.settle()

    def send(self, boxes, at, source):
        self.sent.append((boxes, [int(a) for a in at], source))

    def store_wait(self, _):
        for boxes, at, source in self.sent:
            there, here = boxes.inside(at)
            boxes.view[there] = source.values[here].to(boxes.view.dtype)
        self.sent.clear()

    def product(self, a, b, total, use_acc=True, is_async=False):
        assert list(total.shape) == [a.values.shape[0], b.values.shape[1]]
        found = total.clone() if use_acc else torch.full_like(total, float("nan"))
        self.products.append((a, b, total, found, bool(use_acc)))
        return found

    def product_wait(self, under_way, deps):
        while len(self.products) > under_way:
            a, b, before, found, added = self.products.pop(0)
            made = a.values.float() @ b.values.float()
            found.copy_(before + made if added else made)
        return deps[0] if len(deps) == 1 else deps


class Number(int):
    """A whole number as kernels have it."""

    def to(self, _):
        return self

    def __floordiv__(self, other):
        return Number(int(self) // other)


def language(machine: Machine) -> SimpleNamespace:
    """What kernels call ``gl``."""

    def allocate(dtype, shape, layout):
        flat = torch.full((math.prod(shape),), float("nan") if dtype.is_floating_point else 0, dtype=dtype)
        memory = Memory(flat, 0, shape)
        machine.barriers["kept", id(flat)] = flat
        return memory

    def store(pointer, value, mask=None):
        at, value = torch.broadcast_tensors(torch.as_tensor(pointer.at), value)
        chosen = torch.ones_like(at, dtype=torch.bool) if mask is None else mask.expand(at.shape)
        pointer.tensor.view(-1)[at[chosen]] = value[chosen].to(pointer.tensor.dtype)

    return SimpleNamespace(
        constexpr=object,
        bfloat16=torch.bfloat16,
        float32=torch.float32,
        int32=torch.int32,
        int64=torch.int64,
        program_id=lambda _: Number(machine.program),
        num_warps=lambda: 4,
        minimum=min,
        static_range=range,
        thread_barrier=lambda: None,
        PaddedSharedLayout=Apart,
        SwizzledSharedLayout=lambda *_: None,
        NVMMASharedLayout=lambda *_, **__: None,
        NVMMADistributedLayout=lambda *_: None,
        BlockedLayout=lambda *_: None,
        SliceLayout=lambda *_: None,
        allocate_shared_memory=allocate,
        zeros=lambda shape, dtype, layout: torch.zeros(shape, dtype=dtype),
        arange=lambda start, end, layout: torch.arange(start, end),
        load=lambda pointer: pointer.tensor.view(-1)[pointer.at],
        store=store,
        where=torch.where,
        sum=lambda value, axis: value.sum(axis),
        join=lambda one, other: torch.stack((one, other), -1),
        reshape=torch.reshape,
        convert_layout=lambda value, layout: value,
        exp=torch.exp,
        log=torch.log,
        abs=torch.abs,
        maximum=lambda one, other: one.clamp(min=other),
    )


class Kernel:
    """A kernel that runs here: called with a grid, as a compiled one is."""

    def __init__(self, function, machine):
        self.function, self.machine = function, machine

    def __getitem__(self, grid):
        def run(*given, num_warps):
            given = [Pointer(one) if isinstance(one, torch.Tensor) else one for one in given]
            for program in range(grid[0]):
                self.machine.__init__()
                self.machine.program = program
                self.function(*given)
                assert not self.machine.sent, "ended before its last image was read"
                assert not self.machine.products, "ended before its last products"

        return run


def worked_out(*modules) -> None:
    """Make the kernels of these modules run here, in this process from now on."""
    machine = Machine()
    given = {
        "gl": language(machine),
        "TensorDescriptor": Boxes,
        "fence_async_shared": lambda: None,
        "mbarrier": SimpleNamespace(
            init=machine.init, expect=machine.expect, wait=machine.wait, MBarrierLayout=lambda: None
        ),
        "tma": SimpleNamespace(
            async_copy_global_to_shared=machine.fetch,
            async_copy_shared_to_global=machine.send,
            store_wait=machine.store_wait,
        ),
        "warpgroup_mma": machine.product,
        "warpgroup_mma_wait": machine.product_wait,
        "packed": lambda *four: torch.stack(four, -1).bfloat16().view(torch.int64)[..., 0],
        "_thin": lambda *_: None,
        "add_up": lambda parts, out: out.copy_(parts.sum(1)),
    }
    for module in modules:
        kernels = {name: one.fn for name, one in vars(module).items() if hasattr(one, "is_gluon")}
        for name, function in kernels.items():
            launched = name.startswith("_") and name.endswith("_by_copies")
            setattr(module, name, Kernel(function, machine) if launched else function)
        for name in set(given) & set(vars(module)):
            setattr(module, name, given[name])
