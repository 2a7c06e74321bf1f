"""unweave evaluate: score a run and keep the scores with it."""

import json
from collections.abc import Sequence
from typing import Any

from unweave.cli.console import print_json, print_table, say
from unweave.cli.measure import show_scores
from unweave.cli.measuring import add_measuring_options, measured_settings, save_pictures, watching
from unweave.cli.options import command, parse, typed, whole
from unweave.data.world import called
from unweave.evaluation.evaluation import Evaluation, evaluate
from unweave.studies.measures import MEASURES, find_measure
from unweave.training.run import Run
from unweave.words import number_of

EXAMPLES = """examples:
  unweave evaluate runs/demo
  unweave evaluate runs/demo --metrics mig,dci --seeds 10 --adjust chance
  unweave evaluate runs/demo --metrics mymodule:my_metric --set my_metric.power=3      a metric of your own
  unweave evaluate runs/demo --measures polarised"""


def run(argv: Sequence[str]) -> None:
    """Encode, measure mean and sampled codes, write scores.json and pictures."""
    parser = command(
        "unweave evaluate",
        "Measure the mean and the sampled codes of a run; scores.json and figures go into its folder.",
        usage="unweave evaluate RUN [options]",
        examples=EXAMPLES,
    )
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    parser.add_argument(
        "--samples", type=whole(1, 10**7), default=15_000, metavar="N", help="examples to encode (15000: 10000 + 5000)"
    )
    parser.add_argument(
        "--interventions",
        default="world",
        metavar="world|table",
        help="where batches with one factor fixed come from: the whole world, encoded once, or the sample (world)",
    )
    parser.add_argument(
        "--measures",
        metavar="A,B",
        help=f"only these of a study's measures, or module:Class of yours: {', '.join(MEASURES)}",
    )
    parser.add_argument("--no-pictures", action="store_true", help="write scores only")
    add_measuring_options(parser)
    given = parse(parser, argv)
    opened = Run(given.run)
    if given.measures:
        if given.metrics:
            raise ValueError("--measures takes measures in place of metrics: give --metrics in a command of its own")
        _take_measures(opened, given.measures.split(","), given.json)
        return
    with watching("evaluating", given.quiet) as watch:
        found = evaluate(
            opened,
            n_samples=given.samples,
            interventions=given.interventions,
            watch=watch,
            **measured_settings(given),
        )
    opened.files.write_json("scores.json", found.to_plain())
    if not given.no_pictures:
        _write_pictures(opened, found)
    if given.json:
        print_json({"folder": str(opened.path)} | found.to_plain())
        return
    name = f"{opened.experiment.objective.name} on {called(opened.experiment.world)}"
    for representation, scores in found.scores.items():
        show_scores(
            f"{name}, {representation} codes of {number_of(len(found.sample.rows), 'example')}",
            scores,
            len(found.factor_names),
        )
    if words := found.about_correlated():
        say(words)
    say(f"written: {opened.path / 'scores.json'}")


def _take_measures(opened: Run, names: Sequence[str], as_json: bool) -> None:
    """Measures as a study takes them, kept in the run's folder; none is taken twice."""
    found: dict[str, Any] = {}
    for measure in [find_measure(typed(name.strip())) for name in names]:
        if not opened.files.has(measure.file):
            opened.files.write_json(measure.file, dict(measure(opened)))
        found[measure.name] = opened.files.read_json(measure.file)
    if as_json:
        print_json({"folder": str(opened.path)} | found)
        return
    for name, numbers in found.items():
        print_table(name, ("what", "value"), [(key, _short(value)) for key, value in numbers.items()])
    say(f"written: {opened.path / 'measures'}")


def _short(value: Any) -> Any:
    """Lists and dictionaries as JSON, as far as a line goes."""
    text = value if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
    return f"{text[:59]}…" if isinstance(text, str) and len(text) > 60 else text


def _write_pictures(opened: Run, found: Evaluation) -> None:
    latents = [str(latent) for latent in range(found.sample.mean.shape[1])]
    for representation, scores in found.scores.items():
        codes = getattr(found.sample, representation)
        bins = scores.settings["factor_bins"]
        made = save_pictures(scores, codes, found.sample.factors, latents, found.factor_names, factor_bins=bins)
        for name, content in made.items():
            opened.files.write(f"figures/{representation}_{name}.png", content)
