"""unweave diagnose: which latents a model uses, whether it has collapsed, and what to do about it."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unweave.cli.console import patiently, print_json, print_table, say
from unweave.cli.measuring import add_role_options, role_words, roles_of
from unweave.cli.options import add_quiet, command, parse, read, whole
from unweave.config import Range, check, unknown
from unweave.evaluation.diagnosis import Latent
from unweave.evaluation.posterior_file import read_posteriors
from unweave.evaluation.tables import Roles
from unweave.files import write_text
from unweave.metrics.polarised.types import RULES
from unweave.recipes.diagnose import Diagnosed, diagnose_posteriors, diagnose_run, write_diagnosis
from unweave.training.run import Run
from unweave.words import number_of

EXAMPLES = """the file:
  an npz with arrays mean (or mu, codes) and variance, sample × latent (or log_variance, or std); perhaps sampled, and
  reconstruction, the loss of every example; or a csv or parquet with columns mu*, mean_*, code_* or z*, and
  variance_*, logvar* or std*. `unweave measure` reads the same files.

examples:
  unweave diagnose runs/demo
  unweave diagnose posteriors.npz --factors 5
  unweave diagnose table.csv --codes 'mu*' --factors x,y,size
  unweave diagnose runs/demo --rule kl --json"""


def run(argv: Sequence[str]) -> None:
    """Diagnose a run or a file, print it, and write the page."""
    parser = command(
        "unweave diagnose",
        "Which latents does a model use, and how? Findings in plain words, with what to do.",
        examples=EXAMPLES,
    )
    parser.add_argument("run", metavar="RUN|FILE", help="a run's folder, or an npz with mean and variance")
    parser.add_argument("--rule", default="variance", help=f"how latents are told apart: {', '.join(RULES)} (variance)")
    parser.add_argument(
        "--examples", type=whole(1, 10**7), default=2048, metavar="N", help="examples of a run to encode (2048)"
    )
    parser.add_argument(
        "--jacobians", type=whole(1, 10**6), default=256, metavar="N", help="examples to differentiate at (256)"
    )
    add_role_options(parser, "how many factors the data have, where you know it: 5, or the columns x,y,size of a file")
    parser.add_argument("--accuracy", action="store_true", help="fit linear models to every combination of types; slow")
    parser.add_argument("--seed", type=whole(0), default=0, metavar="N", help="which examples and which noise (0)")
    parser.add_argument("--page", metavar="FILE", help="where the page goes (RUN/diagnosis.html; none for a file)")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_quiet(parser)
    given = parse(parser, argv)
    with patiently(f"diagnosing {given.run}", given.json or given.quiet):
        diagnosed, written = _diagnosed(given)
    if given.page:
        write_text(Path(given.page), diagnosed.page())
        written = Path(given.page)
    if given.json:
        print_json({"page": None if written is None else str(written)} | diagnosed.to_plain())
        return
    _show(diagnosed)
    if written is not None:
        say(f"\nwritten: {written}")


def _diagnosed(given: argparse.Namespace) -> tuple[Diagnosed, Path | None]:
    if given.rule not in RULES:
        raise unknown("rule", given.rule, RULES)
    n_factors, roles = _factors(given)
    if not Path(given.run).is_dir():
        known: dict[str, Any] = {"rule": given.rule, "seed": given.seed, "n_factors": n_factors}
        read = read_posteriors(given.run, roles)
        if not given.json:
            say(role_words(read.roles))
        if n_factors is None:
            known["n_factors"] = len(read.roles.get("factors", ())) or None
        return diagnose_posteriors(read, **known), None
    if roles != Roles():
        raise ValueError(f"{given.run} is a run: it knows its codes and factors; --factors takes their number")
    for name in ("examples", "jacobians"):
        if getattr(given, name) < 2:
            raise ValueError(f"--{name} must be at least 2, not {getattr(given, name)}")
    opened = Run(given.run)
    found = diagnose_run(
        opened,
        n=given.examples,
        seed=given.seed,
        rule=given.rule,
        n_factors=n_factors,
        n_jacobians=given.jacobians,
        accuracy=given.accuracy,
    )
    return found, None if given.page else write_diagnosis(opened, found)


def _factors(given: argparse.Namespace) -> tuple[int | None, Roles]:
    """How many factors there are, as a number or as the names of columns."""
    roles = roles_of(given)
    if len(roles.factors) != 1 or not roles.factors[0].lstrip("-").isdecimal():
        return None, roles
    n = int(read(int, roles.factors[0], "factors"))
    check("--factors", n, Range(1, 10**6))
    return n, replace(roles, factors=())


def _show(diagnosed: Diagnosed) -> None:
    one = diagnosed.diagnosis
    why = "σ² is" if one.rule == "variance" else "because"
    columns = ("no.", "type", why, "KL", "mean σ²", "var σ²", "var μ", "corr.")
    rows = [
        (
            latent.latent, latent.type, latent.evidence.removeprefix("σ² "), *map(rounded, _numbers(latent)),
            "–" if latent.partner is None else f"{latent.correlation:.2f} ({latent.partner})",
        )
        for latent in sorted(one.latents, key=lambda latent: -latent.kl)
    ]  # fmt: skip
    note = "corr.: the strongest correlation of its means with those of another latent"
    print_table(f"{diagnosed.title}: {number_of(one.n_examples, 'example')}", columns, rows, note)
    _show_dependence(diagnosed)
    if diagnosed.accuracy:
        _show_accuracy(diagnosed)
    for name, value in diagnosed.summary().items():
        if value is not None:
            say(f"  {name.replace('_', ' '):32} {value:.4g}")
    if not diagnosed.findings:
        say("\nNothing stands out.")
    for finding in diagnosed.findings:
        say(f"\n{finding.weight}: {finding.text}\n  → {finding.advice} [{finding.reference}]")


def _show_dependence(diagnosed: Diagnosed) -> None:
    rows = [
        (
            one.representation,
            one.subset,
            one.n_latents,
            rounded(one.total_correlation),
            rounded(one.averaged_mi),
            rounded(one.effective_rank),
        )
        for one in diagnosed.diagnosis.dependence
        if one.subset in ("all", "without passive")
    ]
    print_table("how latents depend", ("codes", "latents", "no.", "TC", "averaged MI", "effective rank"), rows)


def _show_accuracy(diagnosed: Diagnosed) -> None:
    rows = [
        (one.representation, " + ".join(one.types), one.n_latents, rounded(one.accuracy), rounded(one.chance))
        for one in diagnosed.accuracy
    ]
    print_table("what a linear model predicts", ("codes", "latents", "no.", "accuracy", "chance"), rows)


def _numbers(latent: Latent) -> tuple[float, ...]:
    return latent.kl, latent.mean_variance, latent.variance_of_variance, latent.variance_of_mean


def rounded(value: float | None) -> float | None:
    """Two digits that matter, so that the table fits a narrow terminal."""
    return None if value is None else float(f"{value:.2g}")
