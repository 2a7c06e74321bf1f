"""What a run answers: codes and examples in blocks, rows that were held out, traversals, samples, forms of files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from unweave import rng
from unweave.data.micro import Micro
from unweave.models.networks import MLP
from unweave.models.objectives import IVAE, PCL
from unweave.training.batches import training_rows
from unweave.training.experiment import Experiment, Form, Plan
from unweave.training.loop import train
from unweave.training.run import Run, _form
from unweave.training.running import Interrupted, RunOptions

BASE = Experiment(Micro(), network=MLP((6,), (6,)), latents=3, steps=2, batch_size=4, plan=Plan("cpu", 1))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(train(BASE, tmp_path_factory.mktemp("run") / "one"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(train(replace(BASE, objective=IVAE(prior_mean="learned"), holdout=0.5), tmp_path_factory.mktemp("told")))


def test_codes_do_not_depend_on_blocks_but_for_their_noise(run: Run) -> None:
    images = run.images(10)
    whole, parts = run.encode(images, seed=5), run.encode(images, seed=5, batch_size=4)
    torch.testing.assert_close(whole.mean, parts.mean)
    torch.testing.assert_close(whole.kl, parts.kl)
    assert parts.mean.shape == (10, 3)
    for code, sizes in ((whole, [10]), (parts, [4, 4, 2])):
        noise = torch.cat([rng.normal(5, rng.Purpose.EVALUATE, place, n, 3) for place, n in enumerate(sizes)])
        torch.testing.assert_close(code.sampled, code.mean + code.variance.sqrt() * noise, rtol=1e-4, atol=1e-5)
    assert torch.equal(run.encode(images).sampled, run.encode(images, seed=0).sampled)


def test_outputs_do_not_depend_on_blocks(run: Run) -> None:
    codes = torch.sin(torch.arange(3.0 * 300)).view(300, 3)
    outputs = run.outputs(codes)
    assert outputs.shape == (300, *run.data.shape)
    for place in (0, 255, 256, 299):
        torch.testing.assert_close(outputs[place], run.outputs(codes[place])[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(run.decode(codes[:2]), torch.sigmoid(outputs[:2]))
    images = run.images(2)
    torch.testing.assert_close(run.reconstruct(images), run.decode(run.encode(images).mean))


def test_rows_are_drawn_without_repetition_and_no_more_than_there_are(run: Run, told: Run) -> None:
    n = len(run.data)
    assert sorted(run.rows(n + 5).tolist()) == list(range(n))
    assert run.rows(7).tolist() == run.rows(n)[:7].tolist()
    assert run.rows(7).tolist() != run.rows(7, 1).tolist()
    trained = training_rows(told.experiment, n)
    assert trained is not None
    assert {*told.rows(n).tolist()} == {*range(n)} - {*trained.tolist()}
    assert torch.equal(run.images(), run.data.examples(run.rows(8), seed=0))


def test_a_traversal_moves_one_latent_at_a_time(run: Run) -> None:
    image = run.images(3)[2]
    mean = run.encode(image).mean[0]
    found = run.traverse(image, latents=[2, 0], n=3, width=1.5)
    assert found.shape == (2, 3, *run.data.shape)
    for row, latent in enumerate((2, 0)):
        for step, value in enumerate((-1.5, 0.0, 1.5)):
            code = mean.clone()
            code[latent] = value
            torch.testing.assert_close(found[row, step], run.decode(code)[0], rtol=1e-4, atol=1e-5)
    assert run.traverse().shape == (3, 9, *run.data.shape)
    for wrong in (3, -1):
        with pytest.raises(ValueError, match=rf"the latents 0 to 2, and not {wrong}"):
            run.traverse(image, latents=[0, wrong])
    with pytest.raises(ValueError, match="starts from one example, and 2 were given"):
        run.traverse(run.images(2))


def test_a_traversal_is_in_deviations_of_the_prior_that_was_learned(told: Run) -> None:
    image, labels = told.images(1), told.labels(1)
    assert labels is not None
    prior_mean, log_variance = told.model.prior_of(labels)  # type: ignore[operator]
    start = told.encode(image, labels).mean[0]
    found = told.traverse(image[0], labels[0], latents=[1], n=2, width=2.0)
    for step, value in enumerate((-2.0, 2.0)):
        code = start.clone()
        code[1] = prior_mean[0, 1] + value * log_variance[0, 1].mul(0.5).exp()
        torch.testing.assert_close(found[0, step], told.decode(code)[0], rtol=1e-4, atol=1e-5)


def test_samples_are_drawn_from_the_prior(run: Run, told: Run) -> None:
    assert run.sample(0).shape == (0, *run.data.shape)
    assert run.sample().shape[0] == 8
    noise = rng.normal(4, rng.Purpose.EVALUATE, 0, 2, 3)
    torch.testing.assert_close(run.sample(2, seed=4), run.decode(noise))
    with pytest.raises(ValueError, match="a whole number from 0 on, not -1"):
        run.sample(-1)
    with pytest.raises(ValueError, match="knows no labels: it was trained by beta_vae"):
        run.sample(2, labels={"x": 1})
    rows = rng.integers(len(told.data), 4, rng.Purpose.EVALUATE, 1, 2, 1)[:, 0]
    labels = told.data.given(rows).float()
    labels[:, told.data.given_names.index("x")] = 2.0
    mean, log_variance = told.model.prior_of(labels)  # type: ignore[operator]
    torch.testing.assert_close(
        told.sample(2, seed=4, labels={"x": 2}), told.decode(mean + (log_variance / 2).exp() * noise)
    )


def test_labels_go_with_images_or_with_rows(run: Run, told: Run) -> None:
    assert run.labels() is None
    for given in ((), (5,), (5, 1)):
        labels = told.labels(*given)
        assert labels is not None
        assert torch.equal(labels, told.data.given(told.rows(*(given or (8,)))).float())
    chosen = torch.tensor([3, 1])
    assert torch.equal(told.labels(rows=chosen), told.data.given(chosen).float())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "form"),
    [
        ("3", Form((3,))),
        ("1,16,16 4,0", Form((1, 16, 16), (4, 0))),
        ("100000", Form((100_000,))),
        ("100001", None),
        ("0,3", None),
        ("3,-1", None),
        ("3 4 5", None),
        ("3,٣", None),
        ("3 999999999", Form((3,), (999_999_999,))),
        ("3 1999999999", None),
        ("", None),
        ("3,", None),
    ],
)
def test_a_file_says_of_which_form_examples_are(words: str, form: Form | None) -> None:
    if form is not None:
        assert _form({"shape": words}, Path("w")) == form
        assert str(form) == words
        return
    with pytest.raises(ValueError, match="w does not say of which shape the examples are"):
        _form({"shape": words}, Path("w"))


def test_a_run_that_is_not_finished_says_how_to_finish_it(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        train(BASE, tmp_path / "one", how=RunOptions(stop=lambda: True))
    run = Run(tmp_path / "one")
    for asked in ("model", "history"):
        with pytest.raises(ValueError, match=r"finish it with: unweave resume .*one"):
            getattr(run, asked)


def test_an_encoder_alone_has_codes_and_nothing_to_show(tmp_path: Path) -> None:
    run = Run(train(replace(BASE, objective=PCL()), tmp_path / "pcl"))
    assert (run.encodes, run.decodes, run.reads_labels) == (True, False, False)
    assert np.isfinite(run.encode(run.images(2)).mean.numpy()).all()
    with pytest.raises(ValueError, match="pcl trains an encoder alone"):
        run.decode(torch.zeros(1, 3))
