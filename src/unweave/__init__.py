"""unweave trains, measures and explains variational autoencoders.

>>> import unweave as uw
>>> run = uw.train("micro", objective=uw.BetaVAE(beta=6), network=uw.MLP((16,), (16,)), latents=6, steps=20, quiet=True)
>>> code = run.encode(run.images(100))
>>> len(uw.variable_types(code.mean, code.variance))
6

``dir(uw)`` is all there is, and ``help(uw.train)`` says how it is called.
"""

import os as _os

__version__ = "0.1.0"

# threads that wait for each other spin briefly and then sleep: on a busy machine they would hold the cores that the
# others need. PyTorch reads this when it is imported; what the user has set stays
if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & _os.environ.keys():
    _os.environ["GOMP_SPINCOUNT"] = "20000"

# the list of names is the one that editors and type checkers read: lines `from MODULE import NAME as NAME`
with open(f"{__file__.rpartition('.')[0]}.pyi", encoding="utf-8") as _stub:
    _lines = [_line.split() for _line in _stub if _line.startswith("from ")]

_MODULES = {_words[3]: _words[1] for _words in _lines}
__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    """A public name, imported when it is first used: ``import unweave`` itself is light."""
    import importlib

    if name not in _MODULES:
        raise AttributeError(f"module 'unweave' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
