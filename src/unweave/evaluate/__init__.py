"""From a run or a table of codes to scores and descriptions.

The package is also the function: ``uw.evaluate(run)`` scores a run. Python binds a subpackage to its parent's attribute
when it is first imported, whatever ``unweave.__getattr__`` says, so the two must be one object.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unweave.evaluate.evaluation import Evaluation


class _EvaluateModule(ModuleType):
    def __call__(self, *arguments: Any, **settings: Any) -> "Evaluation":
        """See :func:`unweave.evaluate.evaluation.evaluate`."""
        from unweave.evaluate.evaluation import evaluate

        return evaluate(*arguments, **settings)


sys.modules[__name__].__class__ = _EvaluateModule
