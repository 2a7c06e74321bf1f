"""What a notebook shows: cells are run in a real kernel, without ipywidgets."""

from typing import Any

import nbclient
import nbformat
import pytest

CELLS = (
    "import numpy as np, unweave as uw\n"
    "pictures = np.random.default_rng(0).random((30, 8, 8))\n"
    "data = uw.world(pictures, called='dots')\ndata",
    "run = uw.train(data, 'runs/dots', network=uw.MLP((8,), (8,)), latents=2, steps=5)",
    "run",
    "run.encode(pictures)",
    "run.scores",
    "uw.Study('two', tuple(uw.Experiment('micro', latents=n) for n in (2, 3)))",
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """The outputs of every cell."""
    here = tmp_path_factory.mktemp("notebook")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("UNWEAVE_DATA", str(here / "data"))
        changed.chdir(here)
        nbclient.NotebookClient(book, timeout=200, kernel_name="python3").execute()
    return [cell.outputs for cell in book.cells]


def test_training_shows_what_was_found_and_one_line_that_moves(shown: list[list[Any]]) -> None:
    told, line = shown[1]
    assert told["text"] == "dots: 30 images of 8 × 8 pixels, grey; no labels\n"
    assert line["data"]["text/plain"].startswith("beta_vae on dots: step 5 of 5, ")
    assert "text/html" not in line["data"]


def test_data_and_runs_show_pictures(shown: list[list[Any]]) -> None:
    for (output,) in (shown[0], shown[2]):
        assert "data:image/png;base64," in output["data"]["text/html"]


def test_codes_scores_and_studies_are_a_line_each(shown: list[list[Any]]) -> None:
    codes, scores, study = (output["data"]["text/plain"] for (output,) in shown[3:])
    assert codes == "Code(30 × 2: variance, mean, log_variance, sampled, kl)"
    assert scores.startswith("no scores yet: ")
    assert study == "Study 'two', models: 2, worlds: micro, methods: BetaVAE(beta=4.0), measures: none"
