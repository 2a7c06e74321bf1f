"""A run in a notebook: what one looks for is there, takes what one has, and gives figures."""

from pathlib import Path

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest

import unweave as uw
from unweave.evaluation.measure import measure
from unweave.evaluation.scores import Scores, ScoresOfCodes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> uw.Run:
    folder = tmp_path_factory.mktemp("opened") / "tiny"
    return uw.train("micro", folder, network=uw.MLP((16,), (16,)), latents=3, steps=20, quiet=True)


def test_figures(run: uw.Run) -> None:
    for figure in (run.plot_history(), run.plot_latents(), run.plot_reconstructions(), run.plot_traversals(n=3)):
        assert isinstance(figure, matplotlib.figure.Figure)
        assert figure._repr_png_()[0].startswith(b"\x89PNG")
    bytes_of_one = (255 * run.images(1)[0, 0].numpy()).astype(np.uint8)
    assert isinstance(run.plot_reconstructions(bytes_of_one), matplotlib.figure.Figure)


def test_asking(run: uw.Run) -> None:
    assert run.scores == {}
    assert "unweave evaluate" in repr(run.scores)
    assert repr(run.encode(run.images(4))) == "Code(4 × 3: variance, mean, log_variance, sampled, kl)"
    found = run.evaluate(metrics=["mig"], n_samples=200, seeds=0)
    assert 0 <= float(found.scores["mean"]["mig"]) <= 1
    assert run.diagnose(n=200, n_jacobians=4).diagnosis.types
    assert run.report() == Path(run.path) / "report.html"
    assert run.to("cpu").path == run.path
    assert "data:image/png" in run._repr_html_()
    assert isinstance(uw.load(run.path), uw.Run)


def test_scores_of_mean_and_sampled_codes_stand_side_by_side() -> None:
    mean = measure(
        np.eye(12)[:, :3], np.c_[np.arange(12) % 3, np.arange(12) % 2], metrics=["mig", "modularity"], seeds=0
    )
    found = ScoresOfCodes(mean=mean, sampled=Scores({"mig": mean["mig"]}, *[{}] * 3, 12, None, {}))
    lines = repr(found).splitlines()
    assert lines[0].split() == ["mean", "sampled"]
    assert [line.split()[0] for line in lines[1:]] == [*mean]
    assert lines[1].split()[1] == lines[1].split()[2]
    assert len(lines[2].split()) == 2
    assert found._repr_html_().count("<td></td>") == 1
    assert "<th>sampled</th>" in found._repr_html_()


def test_scores_are_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    plain = {"x": np.arange(40.0), "kind": np.arange(40) % 2}
    run = uw.train(pd.DataFrame(plain), tmp_path / "run", labels="kind", latents=2, steps=3, quiet=True)
    with pytest.raises(KeyError, match=r"no scores yet: .*run.evaluate\(keep=True\)"):
        run.scores["mean"]
    found = run.evaluate(metrics=["mig", "modularity"], seeds=0)
    for told in (repr(found), found._repr_html_()):  # one factor alone, and few rows
        assert "what compares factors is 1 for any code that varies: modularity." in told
        assert "Only 40 rows were measured" in told
    assert run.scores == {}
    run.evaluate(metrics=["mig"], seeds=0, keep=True)
    assert float(run.scores["mean"]["mig"]) == pytest.approx(float(found.scores["mean"]["mig"]))
    assert list(run.scores) == ["mean", "sampled"]
    with pytest.raises(KeyError, match="there are scores of mean and sampled codes, not of 'means'"):
        run.scores["means"]


def test_nothing_is_written_into_the_package() -> None:
    with pytest.raises(ValueError, match="demo-0 belongs to the package, and scores are written into"):
        uw.load("zoo:demo-0").evaluate(metrics=["mig"], keep=True)


def test_natural_input(run: uw.Run) -> None:
    image = run.images(1)[0].numpy()
    for given in (
        image,
        image[0],
        image.astype(np.float64),
        (255 * image).astype(np.uint8),
        image.tolist(),
        image[None],
    ):
        assert run.encode(given).mean.shape == (1, 3)
        assert run.reconstruct(given).shape == (1, 1, 32, 32)
    assert run.decode(np.zeros(3)).shape == run.decode([[0, 0, 0]]).shape == (1, 1, 32, 32)
    with pytest.raises(ValueError, match="takes examples of 1 × 32 × 32"):
        run.encode(np.zeros((28, 28)))
    with pytest.raises(ValueError, match="this model has 3 latents"):
        run.decode(np.zeros(4))
