"""From an experiment to a finished run folder.

The package is also the function: ``uw.train("micro", …)`` in a notebook. Python binds a subpackage to its parent's
attribute when it is first imported, whatever ``unweave.__getattr__`` says, so the two must be one object.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unweave.train.run import Run


class _TrainModule(ModuleType):
    def __call__(self, *arguments: Any, **settings: Any) -> "Run":
        """See :func:`unweave.train.notebook.train`."""
        from unweave.train.notebook import train

        return train(*arguments, **settings)


sys.modules[__name__].__class__ = _TrainModule
