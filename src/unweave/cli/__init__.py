"""The command line: one module per command, imported only when it is called."""

import errno
import gc
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

GROUPS = {
    "begin": {
        "demo": "see what it is about: train a small model and open its report (two minutes)",
        "worlds": "list the data sets, or fetch one",
        "new": "a file to begin a method, network, world, metric, measure or study of your own",
    },
    "train": {
        "train": "train a model, or many",
        "resume": "go on with an interrupted run",
        "export": "write a trained model for others to load",
        "zoo": "trained models to begin with, and folders of them to host",
    },
    "see what a model has learned": {
        "show": "its latents, losses and files",
        "report": "its page and pictures",
        "diagnose": "which latents it uses, whether it has collapsed, and what to do",
        "traverse": "pictures of what moves when a latent moves",
        "sample": "new examples from its prior, with chosen labels where it knows some",
        "explore": "see and steer latent spaces in the browser",
    },
    "measure and compare": {
        "measure": "score codes from anywhere against their factors",
        "evaluate": "score a run and keep the scores with it",
        "compare": "did runs, seeds or snapshots learn the same thing, layer by layer",
        "intrinsic": "in how many dimensions data or codes lie",
        "dimension": "how many latents a world needs: FONDUE and its kin",
    },
    "study": {
        "study": "many runs: a recipe or your own grid, through any number of interruptions",
        "reproduce": "a published result again, beside what was published, with a verdict",
        "perturb": "a world on which VAEs stop disentangling: small changes of its images",
    },
    "this machine": {
        "bench": "how fast this machine trains: plain loop, CUDA graph and fleet",
        "completion": "completes commands in your shell: bash, zsh or fish",
    },
}
"""Every command by what a person wants to do, the module of the same name in this folder, and what it is for."""

COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}


STATUS = {"Interrupted": 130, "NotFinite": 1, "DamagedFile": 1, "ModelMissing": 1, "AllFailed": 1, "GpuFailed": 1}
"""What a command ends with when its work stopped, failed or met a damaged file; 2 says that it could not begin."""


EXTRAS = {
    "duckdb": "sql",
    "fastapi": "web",
    "huggingface_hub": "hub",
    "mlflow": "mlflow",
    "ray": "ray",
    "submitit": "slurm",
    "tensorboard": "trackers",
    "uvicorn": "web",
    "wandb": "wandb",
}
"""What is not installed unless someone asks for it, and the extra that brings it."""

PACKAGES = {"PIL": "pillow", "sklearn": "scikit-learn"}
"""Packages that are imported by another name."""

REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk is full: the quota is used up",
    errno.EROFS: "the file system may only be read",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; errors are one sentence, unless ``UNWEAVE_DEBUG`` is set."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _tell_warning
            return _run(words, alone=argv is None)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("UNWEAVE_DEBUG"):
            raise
        print(f"unweave: {_sentence(error)}", file=sys.stderr)
        return STATUS.get(type(error).__name__, 2)


def _tell_warning(message: Warning | str, category: type[Warning], *place: Any, **_: Any) -> None:
    """A warning is one sentence too; those about code are for people who write some."""
    if issubclass(category, UserWarning):
        print(f"unweave: {message}", file=sys.stderr)


def _run(words: list[str], *, alone: bool) -> int:
    if words[0:1] == ["help"] and len(words) > 1:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0
    if words[0] == "--version":
        import unweave

        print(unweave.__version__)
        return 0
    name = words[0].replace("-", "_")
    if name not in COMMANDS:
        from unweave.config import unknown

        raise unknown("command", words[0], COMMANDS)
    rest = _trusting(words[1:])
    return int(_imported(f"unweave.cli.{name}", alone=alone).run(rest) or 0)


def _imported(name: str, *, alone: bool) -> ModuleType:
    """A module. What an import makes stays: nobody looks through it for garbage meanwhile, and later neither where the
    command is ``alone`` in its process.
    """
    if name in sys.modules or not gc.isenabled():
        return importlib.import_module(name)
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        if alone:
            gc.freeze()
        gc.enable()


def _trusting(words: list[str]) -> list[str]:
    """The words without every ``--trust MODULE``: whom to trust is known before anything is opened."""
    from unweave.trusted import trust

    rest, waiting = list[str](), iter(words)
    for word in waiting:
        if word != "--trust" and not word.startswith("--trust="):
            rest.append(word)
            continue
        trust(*(word.partition("=")[2] or next(waiting, "")).split(","))
    return rest


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = []
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:", *(_line(name, text, width) for name, text in commands.items())]
    return "\n".join(
        [
            "unweave trains, measures and explains variational autoencoders.",
            "",
            "usage: unweave COMMAND [options]",
            *lines,
            "",
            "New here? Type: unweave demo        About one command: unweave train --help",
        ]
    )


def _line(name: str, text: str, width: int) -> str:
    import textwrap

    return textwrap.fill(text, 80, initial_indent=f"  {name:<{width}}  ", subsequent_indent=" " * (width + 4))


def _sentence(error: Exception) -> str:
    from unweave.files import in_words

    missing = error.name.partition(".")[0] if isinstance(error, ModuleNotFoundError) and error.name else ""
    if missing in EXTRAS:
        return f"{missing} is not installed; run: pip install 'unweave[{EXTRAS[missing]}]'"
    if missing and not missing.startswith("_"):
        package = PACKAGES.get(missing, missing)
        return f"this needs {package}, which is not installed; run: pip install {package}"
    if isinstance(error, OSError) and error.errno in REASONS:
        return f"{REASONS[error.errno]} ({error.filename or 'while writing'}). What was saved before is intact."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, KeyError) and error.args and str(error.args[0]):
        return str(error.args[0])
    return in_words(error)
