"""The page of a run and its pictures, written into the run's folder."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unweave.config import without_hidden
from unweave.data.world import called
from unweave.evaluation.describe import Description, describe
from unweave.evaluation.findings import expected_of, sentences
from unweave.pages.page import Page
from unweave.pages.run import CodeSamples, LatentTable, Pictures, TableRows, TrainingCurves, run_page
from unweave.shapes import Tensor
from unweave.training.experiment import experiment_to
from unweave.training.run import Run
from unweave.words import number_of

N_FRAMES, WIDTH, N_PICTURES, N_SAMPLES = 21, 2.5, 10, 1000


def write_run_page(run: Run, description: Description | None = None) -> Path:
    """Write ``report.html`` and ``figures/*.png``; the page's path is returned."""
    run = run.bare
    made = page_of_run(run, description or describe(run))
    for name, content in made.pictures.items():
        run.files.write(f"figures/{name}", content)
    return run.files.write("report.html", made.html)


def page_of_run(run: Run, description: Description) -> Page:
    """The page of a run and its pictures, not yet written."""
    environment, experiment, plain = _environment(run), run.experiment, description.code.standardised()
    return run_page(
        title=f"{experiment.objective.name} on {called(experiment.world)}, seed {experiment.seed}",
        experiment=experiment_to(replace(experiment, world=without_hidden(experiment.world))),
        latent_table=LatentTable(
            description.types,
            description.kl.numpy(),
            description.mean_variance.numpy(),
            description.variance_of_variance.numpy(),
            description.variance_of_mean.numpy(),
        ),
        curves=_curves(run),
        shown=_pictures(run) if run.decodes and len(run.data.shape) == 3 else None,
        rows=_rows(run) if run.decodes and run.data.columns is not None else None,
        codes=CodeSamples(plain.mean[:N_SAMPLES].numpy(), plain.sampled[:N_SAMPLES].numpy()),
        findings=sentences(description, expected_of(experiment.world.card().space)),
        summary={
            "steps": experiment.steps,
            "latents": experiment.latents,
            "examples looked at": description.n_examples,
        },
        environment={name: value for name, value in environment.items() if name != "command"},
        command=shlex.join(environment["command"]),
        protocol=f"Measured on {number_of(description.n_examples, 'example')}, drawn by seed 0.",
    )


def _environment(run: Run) -> dict[str, Any]:
    if not run.files.has("environment.json"):  # models of a zoo say nothing of the machine they were trained on
        return {"command": []}
    found = run.files.read_json("environment.json")
    words = found.get("command") if isinstance(found, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{run.path / 'environment.json'} should hold an object with the words of a command")
    return dict(found)


def _curves(run: Run) -> TrainingCurves:
    history = run.history
    return TrainingCurves(
        np.array(history.steps),
        {name: history.column(name).numpy() for name in history.terms},
        history.latent("kl").numpy(),
    )


def _pictures(run: Run) -> Pictures:
    originals, labels = run.images(N_PICTURES), run.labels(N_PICTURES)
    frames = run.traverse(*_middling(run), n=N_FRAMES, width=WIDTH)
    values = np.linspace(-WIDTH, WIDTH, N_FRAMES)
    return Pictures(frames.numpy(), values, originals.numpy(), run.reconstruct(originals, labels).numpy())


def _rows(run: Run) -> TableRows:
    columns, (rows, labels) = run.data.columns, (run.images(N_SAMPLES), run.labels(N_SAMPLES))
    assert columns is not None
    frames = run.traverse(*_middling(run), n=N_FRAMES, width=WIDTH)
    shown = [columns.in_units(values).numpy() for values in (frames, rows, run.reconstruct(rows, labels))]
    return TableRows(
        columns.names, np.array(columns.deviations), shown[0], np.linspace(-WIDTH, WIDTH, N_FRAMES), *shown[1:]
    )


def _middling(run: Run) -> tuple[Tensor, Tensor | None]:
    """The example whose code is nearest the middle, where traversals have room to both sides, and its labels."""
    images, labels = run.images(256), run.labels(256)
    middle = run.encode(images, labels).mean.square().sum(1).argmin()
    return images[middle], None if labels is None else labels[middle]
