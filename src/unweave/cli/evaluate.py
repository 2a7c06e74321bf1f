"""unweave evaluate: score a run and keep the scores with it."""

from collections.abc import Sequence

from unweave.cli.console import print_json, say
from unweave.cli.measure import show_scores
from unweave.cli.measuring import add_measuring_options, measured_settings, save_pictures, watching
from unweave.cli.options import command, parse, whole
from unweave.data.world import called
from unweave.evaluation.evaluation import Evaluation, evaluate
from unweave.training.run import Run


def run(argv: Sequence[str]) -> None:
    """Encode, measure mean and sampled codes, write scores.json and pictures."""
    parser = command(
        "unweave evaluate",
        "Measure the mean and the sampled codes of a run; scores.json and figures go into its folder.",
        usage="unweave evaluate RUN [options]",
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
    parser.add_argument("--no-pictures", action="store_true", help="write scores only")
    add_measuring_options(parser)
    given = parse(parser, argv)
    opened = Run(given.run)
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
        show_scores(f"{name}, {representation} codes of {len(found.sample.rows):,} examples", scores)
    say(f"written: {opened.path / 'scores.json'}")


def _write_pictures(opened: Run, found: Evaluation) -> None:
    latents = [str(latent) for latent in range(found.sample.mean.shape[1])]
    for representation, scores in found.scores.items():
        codes = getattr(found.sample, representation)
        bins = scores.settings["factor_bins"]
        made = save_pictures(scores, codes, found.sample.factors, latents, found.factor_names, factor_bins=bins)
        for name, content in made.items():
            opened.files.write(f"figures/{representation}_{name}.png", content)
