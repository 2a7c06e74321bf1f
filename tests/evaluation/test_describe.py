"""What a description says of every latent, computed again with numpy from the codes."""

import numpy as np
import pytest

from unweave.api import train
from unweave.evaluation.describe import describe
from unweave.models.likelihoods import LearnedGaussian
from unweave.models.networks import MLP
from unweave.training.experiment import Plan
from unweave.training.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    small = {"network": MLP((8,), (8,)), "latents": 3, "steps": 3, "plan": Plan("cpu", 1), "init": "pytorch"}
    return train("micro", tmp_path_factory.mktemp("runs") / "run", quiet=True, likelihood=LearnedGaussian(), **small)


def test_variances_are_those_of_the_examples_themselves(run: Run) -> None:
    found = describe(run, n=5)
    mean, variance = found.code.mean.numpy(), found.code.variance.numpy()
    assert mean.shape == (5, 3)
    # divided by the number of examples, not by one less
    np.testing.assert_allclose(found.variance_of_mean, ((mean - mean.mean(0)) ** 2).sum(0) / 5, rtol=1e-4)
    np.testing.assert_allclose(found.variance_of_variance, ((variance - variance.mean(0)) ** 2).sum(0) / 5, rtol=1e-3)
    np.testing.assert_allclose(found.mean_variance, variance.mean(0), rtol=1e-5)
    kl = 0.5 * (mean**2 + variance - np.log(variance) - 1)
    np.testing.assert_allclose(found.kl, kl.mean(0), rtol=1e-4, atol=1e-6)


def test_the_loss_is_that_of_the_mean_codes_with_the_learned_noise(run: Run) -> None:
    found, images = describe(run, n=5, seed=3), run.images(5, seed=3)
    noise = float(run.model.log_noise)
    error = (images - run.decode(found.code.mean)).square().flatten(1).sum(1).mean().item()
    size = images[0].numel()
    wanted = error / (2 * np.exp(noise)) + size / 2 * (noise + np.log(2 * np.pi))
    assert found.reconstruction == pytest.approx(wanted, rel=1e-5)
    assert found.n_examples == 5


def test_rows_begin_with_the_latent_that_says_most(run: Run) -> None:
    found = describe(run, n=5)
    rows = found.rows()
    assert [row["kl"] for row in rows] == sorted(found.kl.tolist(), reverse=True)
    for row in rows:
        latent = int(row["latent"])
        assert row["type"] == found.types[latent]
        assert row["variance_of_mean"] == found.variance_of_mean[latent].item()
