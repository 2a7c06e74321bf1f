"""The micro-world: its grid, its order, and that no two images are alike."""

import torch

from unweave import config
from unweave.data.micro import Micro
from unweave.metrics.supervised.mig import mig


def test_all_images_differ() -> None:
    data = Micro().load()
    assert data.store.shape == (2048, 1, 32, 32)
    assert len(data) == data.space.n_cells == Micro().card().n_examples
    assert len(torch.unique(data.store.flatten(1), dim=0)) == len(data)


def test_neighbours_differ_visibly() -> None:
    """A step of any factor moves at least ten pixels by more than a tenth."""
    images = Micro().load().examples(torch.arange(2048)).view(16, 16, 8, -1)
    for axis in range(3):
        steps = (images.diff(dim=axis).abs() > 0.1).sum(-1)
        assert steps.min() >= 10


def test_factors_are_what_the_image_shows() -> None:
    data = Micro().load()
    rows = torch.arange(0, 2048, 37)
    images, factors = data.examples(rows)[:, 0].double(), data.factors(rows)
    mass = images.sum(dim=(1, 2))
    pixel = torch.arange(32) + 0.5
    x, y = (images.sum(1) * pixel).sum(1) / mass, (images.sum(2) * pixel).sum(1) / mass
    torch.testing.assert_close(x, 8 + 16 / 15 * factors[:, 0].double(), atol=0.03, rtol=0)
    torch.testing.assert_close(y, 8 + 16 / 15 * factors[:, 1].double(), atol=0.03, rtol=0)
    torch.testing.assert_close((mass / torch.pi).sqrt(), 3 + 4 / 7 * factors[:, 2].double(), atol=0.03, rtol=0)


def test_loading_is_repeatable_and_the_config_is_plain() -> None:
    assert (Micro().load().store == Micro().load().store).all()
    assert config.to_plain(Micro()) == {"name": "micro"}
    assert Micro().card().on_disk


def test_a_shorter_reach_keeps_discs_together() -> None:
    images = Micro(width=0.6, reach=0.5).load().examples(torch.tensor([0, 2047]))
    together = (images[0] * images[1]).sum()
    assert together > 0
    assert (Micro().load().examples(torch.tensor([0, 2047])).prod(0)).sum() == 0
    assert config.fingerprint(Micro()) == config.fingerprint(Micro(reach=1.0)) != config.fingerprint(Micro(reach=0.5))


def test_principal_components_find_the_factors_of_near_discs() -> None:
    scores = []
    for world in (Micro(), Micro(width=0.6, reach=0.5)):
        data = world.load()
        rows = torch.arange(len(data))
        flat = data.examples(rows).flatten(1).double()
        left, sizes, _ = torch.linalg.svd(flat - flat.mean(0), full_matrices=False)
        scores.append(float(mig((left * sizes)[:, :3], data.space.values(rows)).score))
    assert scores[0] < 0.3
    assert scores[1] > 0.55
