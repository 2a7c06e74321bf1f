"""Models for others: the layout of the Hugging Face hub (config.json, model.safetensors, a card), and reading it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unweave.config import Tables, from_plain, shown, to_plain, without_hidden
from unweave.data.columns import Columns
from unweave.data.world import called
from unweave.files import parse_json, require_folder, things_in
from unweave.models import (
    LIKELIHOODS,
    NETWORKS,
    OBJECTIVES,
    POSTERIORS,
    Architecture,
    Likelihood,
    Method,
    Model,
    Network,
    Posterior,
)
from unweave.models.objectives.beta_vae import BetaVAE
from unweave.models.optimisers import Tensors
from unweave.runs.folder import DamagedFile, RunFolder, as_json
from unweave.runs.names import read_plain
from unweave.runs.row import reading_scores
from unweave.training.checkpoint import model_with, read_tensors, to_bytes
from unweave.training.experiment import experiment_from, experiment_to, is_experiment
from unweave.training.hub import fetch
from unweave.training.run import Run
from unweave.trusted import Untrusted

FORMAT = 1
TABLES: Tables = {Method: OBJECTIVES, Network: NETWORKS, Posterior: POSTERIORS, Likelihood: LIKELIHOODS}


def export(run: Run, target: Path | str) -> Path:
    """Write a finished run as a model that :func:`from_pretrained` reads, with its card; its folder is returned.

    >>> import unweave as uw
    >>> run = uw.train("micro", "runs/tiny", network=uw.MLP((16,), (16,)), latents=3, steps=20, quiet=True)
    >>> sorted(path.name for path in uw.export(run, "model").iterdir())
    ['README.md', 'SHA256SUMS', 'config.json', 'model.safetensors']
    """
    place = require_folder(target, "a folder for the model")
    folder, files = RunFolder(place), _model_files(run) if run.encodes else _manipulation_files(run)
    _refuse_others(folder, run, files["config.json"])
    folder.write_all(files)
    return folder.path


def _model_files(run: Run) -> dict[str, bytes | str]:
    config = {
        "library_name": "unweave",
        "format": FORMAT,
        "architecture": to_plain(run.model.architecture),
        "experiment": experiment_to(run.experiment),
    }
    if not _is_usual(run.experiment.objective):
        config["method"] = to_plain(run.experiment.objective)
    weights = to_bytes(run.model.state_dict(), {"format": "pt"})
    return {"config.json": as_json(config), "model.safetensors": weights, "README.md": card(run)}


def _manipulation_files(run: Run) -> dict[str, bytes | str]:
    """The network and the recipe: what the world ``perturbed`` reads, without where the models lay."""
    plain: dict[str, Any] = experiment_to(run.experiment)
    for side in ("foster", "diminish"):
        plain["objective"][side] = [one | {"run": Path(one["run"]).name} for one in plain["objective"][side]]
    assert run.history.steps  # one that is not finished says so here
    weights = run.files.read("model.safetensors")
    return {"config.json": as_json(plain), "model.safetensors": weights, "README.md": _manipulation_card(run)}


def _refuse_others(folder: RunFolder, run: Run, config: bytes | str) -> None:
    """An export is written again where it is of the same experiment, and never over anything else."""
    if not folder.has("config.json"):
        found = things_in(folder.path)
        begun = found == ["config.json"] and read_plain(folder.path, "config.json") == str(config).encode()
        if found and not begun:  # a kill may have come before the first file was listed
            raise ValueError(f"{folder.path} is not empty and was not written by an export; choose another folder")
        return
    if folder.has("environment.json"):
        raise ValueError(f"{folder.path} is the folder of a run; choose another folder for the export")
    known = folder.read_json("config.json")
    plain = known.get("experiment", known) if isinstance(known, dict) else known
    try:
        same = experiment_from(plain).id == run.experiment.id
    except ValueError:
        same = False
    if not same:
        raise ValueError(f"{folder.path} holds another model: choose another folder for {run.path}, or delete it first")


def from_pretrained(source: Path | str) -> Model:
    """A model from an exported folder, a run's, or from the Hugging Face hub by its name ``owner/model``.

    >>> import unweave as uw
    >>> run = uw.train("micro", "runs/tiny", network=uw.MLP((16,), (16,)), latents=3, steps=20, quiet=True)
    >>> model = uw.from_pretrained(uw.export(run, "model"))
    >>> model.encode(run.images(5)).mean.shape
    torch.Size([5, 3])
    """
    if not _is_on_hub(source):
        return _opened(Path(source))
    try:
        return _opened(_fetched(source))
    except DamagedFile:
        return _opened(_fetched(source, again=True))


def _opened(place: Path) -> Model:
    folder = RunFolder(place, follow_links=True)  # the hub keeps its files behind links
    if not folder.has("config.json") and not (folder.path / "config.json").exists():
        raise FileNotFoundError(f"{folder.path} holds no exported model: it has no config.json")
    config = parse_json(_content(folder, "config.json"), folder.path / "config.json")
    if is_experiment(config):
        return Run(folder.path, follow_links=True).model
    _check_known(config, folder.path / "config.json")
    method: Method = _part(folder, Method, config.get("method", {"name": BetaVAE.name}), "method")
    architecture: Architecture = _part(folder, Architecture, config.get("architecture"), "architecture")
    model = model_with(method, architecture, _weights(folder), folder.path / "model.safetensors")
    return model.to(memory_format=torch.channels_last).eval().requires_grad_(False)  # type: ignore[call-overload]


def _check_known(config: Any, place: Path) -> None:
    """Refuse what is not the config of an export that this version reads."""
    known = config if isinstance(config, dict) else {}
    library, version = known.get("library_name"), known.get("format")
    if library != "unweave" or not isinstance(version, int) or version > FORMAT:
        raise ValueError(
            f"{place} is not a model of this version of unweave"
            f" (library {shown(library)}, format {shown(version)}, known up to {FORMAT})"
        )


def _part(folder: RunFolder, kind: type, plain: Any, name: str) -> Any:
    try:
        return from_plain(kind, plain, TABLES, name)
    except Untrusted:
        raise
    except ValueError as error:
        raise ValueError(f"{folder.path / 'config.json'}: {error}") from error


def _weights(folder: RunFolder) -> Tensors:
    return read_tensors(_content(folder, "model.safetensors"), folder.path / "model.safetensors")[0]


def card(run: Run) -> str:
    """The model card: what it is, how it was trained, how to use it, what it is not."""
    experiment, last = run.experiment, run.history
    plain: dict[str, Any] = experiment_to(replace(experiment, world=without_hidden(experiment.world)))
    rows = "\n".join(f"| {name} | `{json.dumps(value)}` |" for name, value in plain.items())
    term, words = ("reconstruction", "Reconstruction loss") if "reconstruction" in last.columns else ("loss", "Loss")
    ending = f"{words} of the last recorded batch: {float(last.column(term)[-1]):.2f}"
    decoding = "pictures = model.decode(code.mean)" if run.decodes else "# an encoder alone: nothing can be decoded"
    kind = "variational autoencoder" if _is_usual(experiment.objective) else f"{experiment.objective.name} model"
    columns = experiment.world.known_columns()
    rows_or_images = "images" if columns is None else "(rows - mean) / deviation"
    given = f"{rows_or_images}, labels" if run.reads_labels else rows_or_images
    scale = "" if columns is None else _scale(columns)
    if columns is not None and run.decodes:
        decoding = "rows = mean + deviation * model.decode(code.mean)"
    return f"""---
library_name: unweave
tags: [variational-autoencoder, representation-learning, disentanglement]
---
# {experiment.objective.name} on {called(experiment.world)}

A {kind} with {experiment.latents} latents, trained for {experiment.steps:,} steps with seed
{experiment.seed}. {ending}.

```python
import unweave as uw

model = uw.from_pretrained("this-folder")
{scale}code = model.encode({given})        # code.mean, code.variance, code.kl
{decoding}
```

| setting | value |
|---|---|
{rows}

{_measured(run)}One seed of one setting: results of such models vary between seeds, so compare several before you draw
conclusions.
"""


def _measured(run: Run) -> str:
    """A table of the scores that were kept with a run, where some were."""
    if not run.files.has("scores.json"):
        return ""
    kept = run.files.read_json("scores.json")
    with reading_scores(run.files):
        return _score_table(kept)


def _score_table(kept: Mapping[str, Any]) -> str:
    sides = [kept[name]["scores"] for name in ("mean", "sampled") if name in kept]
    rows = "\n".join(
        f"| {name} | {' | '.join(_with_interval(side.get(name)) for side in sides)} |" for name in sides[0]
    )
    has_intervals = any(one.get("low") is not None for side in sides for one in side.values())
    heads = " | ".join(f"{name} codes" for name in ("mean", "sampled") if name in kept)
    return f"""## Scores

Of {kept["n_samples"]:,} examples{", with intervals at 95 % over random halves of them" if has_intervals else ""}.

| score | {heads} |
|---|{"---|" * len(sides)}
{rows}

"""


def _with_interval(score: Mapping[str, Any] | None) -> str:
    if score is None or not isinstance(score["value"], int | float):
        return "" if score is None else str(score["value"])
    low, high = score.get("low"), score.get("high")
    return f"{score['value']:.3f}" + ("" if low is None or high is None else f" ({low:.3f} … {high:.3f})")


def _scale(columns: Columns) -> str:
    """The lines of code that bring rows to the scale that the model knows; numbers stand in config.json too."""
    parts = {"mean": columns.means, "deviation": columns.deviations}
    lines = [
        f"{name} = torch.tensor([{', '.join(f'{one:.9g}' for one in values)}])\n" for name, values in parts.items()
    ]
    return f"import torch\n\n# columns: {', '.join(columns.names)}\n" + "".join(lines)


def _manipulation_card(run: Run) -> str:
    experiment = run.experiment
    epsilon, n = getattr(experiment.objective, "epsilon", 0.0), len(getattr(experiment.objective, "foster", ()))
    return f"""---
library_name: unweave
tags: [variational-autoencoder, disentanglement, data-set]
---
# {called(experiment.world)}, changed by up to {epsilon:g} a pixel

A network m that turns the factors w of an example into a change of its image, x + {epsilon:g} m(w), reflected back into
[0, 1]. It was trained so that the images suit {n} entangled model{"s" * (n != 1)} and not as many disentangled ones
(Zietlow et al., 2021): VAEs that are trained on the altered images tend to entangle their factors.

```sh
unweave train perturbed --world.run this-folder
```

Factors and their order are those of {called(experiment.world)}, which is composed with the change when it is loaded.
"""


def _is_usual(method: Method) -> bool:
    """Whether what is kept of a method is an autoencoder."""
    return type(method).model is Method.model


def _content(folder: RunFolder, name: str) -> bytes:
    # a folder from the hub may come without our list of checksums
    return folder.read(name) if folder.sums() else read_plain(folder.path, name, follow_links=True)


def _is_on_hub(source: Path | str) -> bool:
    """A name with one stroke that is no folder here."""
    name = str(source)
    return not Path(source).exists() and name.count("/") == 1 and not name.startswith((".", "/", "~"))


def _fetched(source: Path | str, *, again: bool = False) -> Path:
    try:
        return fetch(str(source), ["config.json", "model.safetensors", "SHA256SUMS", "*.md"], again=again)
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise FileNotFoundError(f"there is no folder {source}, and {error}") from error
