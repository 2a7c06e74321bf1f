"""Checkpoints of fleets whose groups were filled up go on where they are filled up less."""

import torch

from unweave.training.checkpoint import without_doubles


def stack(groups: dict[int, int], width: int) -> dict[str, torch.Tensor]:
    """A checkpoint of groups with so many members, each row telling its group and place, filled up to ``width``."""
    rows = [
        [10 * group + min(place, n - 1 if place < n else 0) for place in range(max(n, width))]
        for group, n in groups.items()
    ]
    tensors = {"parameters": torch.tensor([[one] for group in rows for one in group])}
    tensors["failed_at"] = tensors["parameters"][:, 0].clone()
    tensors["history.steps"] = torch.arange(len(tensors["failed_at"]))  # as long as the stack, and none of its rows
    for group, held in enumerate(rows):
        tensors[f"group{group}/failed_terms"] = torch.tensor(held)[:, None]
        tensors[f"group{group}/history"] = torch.tensor(held)[None, :, None].repeat(3, 1, 2)
    return tensors


def test_rows_of_members_are_found_among_doubles():
    filled, bare = stack({0: 3, 1: 1, 2: 16}, 16), stack({0: 3, 1: 1, 2: 16}, 1)
    own = {name: tensor for name, tensor in bare.items() if "history" not in name}
    found = without_doubles(filled, own)
    for name, tensor in bare.items():
        if name != "history.steps":
            assert torch.equal(found[name], tensor), name
    assert torch.equal(found["history.steps"], filled["history.steps"])


def test_what_fits_stays_as_it_is():
    bare = stack({0: 3, 1: 2}, 1)
    assert without_doubles(bare, bare) is bare
    smaller = stack({0: 2, 1: 2}, 1)
    assert without_doubles(smaller, bare) is smaller  # another fleet's: it is refused by its shapes
    alone = {"network.weight": torch.zeros(3)}
    assert without_doubles(alone, alone) is alone
