"""A store that somebody looks at again and again: what has not changed since the last look is not read again."""

from functools import cached_property
from typing import Any

from unweave.runs.folder import RunFolder, signature
from unweave.studies.store import Store

Lists = tuple[dict[str, str], dict[str, str]]


class SeenFolder(RunFolder):
    """A run's folder whose list, and whose JSON files, are read again only where they have changed."""

    @cached_property
    def _seen(self) -> dict[str, Lists]:
        """The list of files by the signature of the folder; at most one."""
        return {}

    @cached_property
    def _values(self) -> dict[str, tuple[str, Any]]:
        """What a file held, by its name, with its checksum."""
        return {}

    def _lists(self) -> Lists:
        now = signature(self.path)
        if now in self._seen:
            return self._seen[now]
        found = super()._lists()
        self._seen.clear()
        # a list that announces a file is about to change
        if now and not found[1] and signature(self.path) == now:
            self._seen[now] = found
        return found

    def read_json(self, name: str) -> Any:
        """A JSON file, after checking it where it is new."""
        checksum = self.sums().get(name, "")
        if self._values.get(name, ("",))[0] != checksum or not checksum:
            self._values[name] = (checksum, super().read_json(name))
        return self._values[name][1]


class SeenStore(Store):
    """A store whose folders are looked at again and again."""

    @cached_property
    def _folders(self) -> dict[str, SeenFolder]:
        return {}

    def folder(self, run_id: str) -> SeenFolder:
        """The folder of a run by its id, always the same one."""
        if run_id not in self._folders:
            self._folders[run_id] = SeenFolder(super().folder(run_id).path)
        return self._folders[run_id]

    def prepare(self) -> "SeenStore":
        """Make the folder ready for work in it."""
        super().prepare()
        return self
