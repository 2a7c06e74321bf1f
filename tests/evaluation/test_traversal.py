"""Strips, planes and eigenfaces against codes that are moved by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch

from unweave.api import train
from unweave.evaluation.decoder import look_at_decoder, random_dto
from unweave.evaluation.describe import describe
from unweave.evaluation.traversal import by_deviation, eigenfaces, plane, strips
from unweave.models.method import Method
from unweave.models.networks import MLP, Conv
from unweave.models.objectives import AE, IVAE, QLAE
from unweave.training.experiment import Plan
from unweave.training.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "run"
    small = {"network": Conv((2, 3), (4, 4), 6), "latents": 3, "steps": 3, "plan": Plan("cpu", 1), "init": "pytorch"}
    return train("micro", folder, quiet=True, **small)


def test_the_order_is_that_of_the_mean_deviation(run: Run) -> None:
    description = describe(run, n=50)
    deviations = [float(column.sqrt().mean()) for column in description.code.variance.T]
    order = by_deviation(description)
    assert sorted(deviations) == [deviations[latent] for latent in order]
    assert strips(run, description, n=3).latents == tuple(order)


def test_strips(run: Run) -> None:
    image = run.images(4)[2]
    found = strips(run, describe(run, n=50), latents=[2, 0], image=image, n=3, width=1.5)
    code = run.encode(image[None]).mean[0].clone()
    code[0] = 1.5
    torch.testing.assert_close(found.images[1, 2], run.decode(code[None])[0])
    assert found.values.tolist() == [-1.5, 0.0, 1.5]


def test_a_plane(run: Run) -> None:
    found = plane(run, 2, 1, n=5, width=2.0)
    assert found.shape == (5, 5, 1, 32, 32)
    code = run.encode(run.images(1)).mean[0].clone()
    # the first row shows the first latent at its largest
    code[2], code[1] = 2.0, -1.0
    torch.testing.assert_close(found[0, 1], run.decode(code[None])[0])


def test_eigenfaces(run: Run) -> None:
    description = describe(run, n=50)
    found = eigenfaces(run, description, n_latents=2)
    middle = run.encode(run.images(300)).mean.mean(0)
    torch.testing.assert_close(found.images[0, 1], run.decode(middle[None])[0])
    shifted = middle.clone()
    shifted[by_deviation(description)[1]] += 2.5
    torch.testing.assert_close(found.images[1, 2], run.decode(shifted[None])[0])


def test_eigenfaces_move_by_deviations_of_a_prior_that_is_learnt(tmp_path: Path) -> None:
    small = {"network": MLP((4,), (4,)), "latents": 3, "steps": 5, "plan": Plan("cpu", 1)}
    run = train("micro", tmp_path / "run", objective=IVAE(), quiet=True, **small)
    description = describe(run, n=50)
    found, code = eigenfaces(run, description), run.encode(run.images(300), run.labels(300))
    assert code.prior_variance is not None
    shifted, last = code.mean.mean(0), by_deviation(description)[2]
    shifted[last] += 2.5 * np.mean(np.sqrt(code.prior_variance[:, last].numpy()))
    torch.testing.assert_close(found.images[2, 2], run.decode(shifted[None])[0])


@pytest.mark.parametrize("objective", [AE(), QLAE(values=4)])
def test_without_a_prior_latents_move_and_are_drawn_as_codes_lie(objective: Method, tmp_path: Path) -> None:
    small = {"network": MLP((4,), (4,)), "latents": 3, "steps": 30, "plan": Plan("cpu", 1), "quiet": True}
    run = train("micro", tmp_path / "run", objective=objective, **small)
    codes = run.encode(run.images(2048)).mean
    start, moved = run.encode(run.images(1)).mean[0], codes[:, 1].mean() - 2.5 * codes[:, 1].std(correction=0)
    frame = start.clone()
    frame[1] = moved
    torch.testing.assert_close(run.traverse(n=3)[1, 0], run.decode(frame[None])[0])
    torch.testing.assert_close(plane(run, 1, 2, n=3)[2, 1], run.decode(_with(frame, 2, codes[:, 2].mean())[None])[0])
    middle = run.encode(run.images(300)).mean
    shifted = _with(middle.mean(0), 0, middle[:, 0].mean() + 2.5 * middle[:, 0].std(correction=0))
    torch.testing.assert_close(eigenfaces(run).images[0, 2], run.decode(shifted[None])[0])
    seen: list[torch.Tensor] = []
    run.decode = lambda drawn: seen.append(drawn) or drawn  # type: ignore[method-assign, func-returns-value]
    run.sample(40)
    assert all(bool((codes[:, latent] == value).any()) for one in seen[0] for latent, value in enumerate(one))
    assert len({tuple(one) for one in seen[0].tolist()}) > 1


def _with(code: torch.Tensor, latent: int, value: torch.Tensor) -> torch.Tensor:
    changed = code.clone()
    changed[latent] = value
    return changed


def test_a_run_is_described_where_no_description_is_given(run: Run) -> None:
    whole, few = describe(run), describe(run, n=50)
    assert (eigenfaces(run).kl.tolist(), eigenfaces(run, few).kl.tolist()) == (
        whole.kl[by_deviation(whole)].tolist(),
        few.kl[by_deviation(few)].tolist(),
    )
    assert strips(run, n=2).kl.tolist() == whole.kl[by_deviation(whole)].tolist()
    assert strips(run, few, n=2).kl.tolist() == few.kl[by_deviation(few)].tolist()


def test_refusals(run: Run) -> None:
    with pytest.raises(ValueError, match="numbered 0…2, given 3"):
        plane(run, 0, 3)
    with pytest.raises(ValueError, match="two different latents"):
        plane(run, 1, 1)
    with pytest.raises(ValueError, match="numbered 0…2, given -1"):
        strips(run, describe(run, n=9), latents=[-1])


def test_the_decoder_has_a_level_of_chance_where_latents_are_used(run: Run) -> None:
    images = run.images(6)
    code, used = run.encode(images), torch.tensor([True, False, True])
    found = look_at_decoder(run, images, code, used, n_jacobians=4, seed=2)
    assert found.dto_chance == random_dto(2, 2)
    none = look_at_decoder(run, images, code, torch.zeros(3, dtype=torch.bool), n_jacobians=4)
    assert (none.dto, none.dto_chance, none.degenerate, none.ima) == (None, None, None, None)
