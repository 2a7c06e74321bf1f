"""Failures in words: why a run, or one of its measures, has no result."""

from collections.abc import Mapping
from typing import Any

FAILURE, LOG, OF_MEASURES = "failure.json", "log.txt", "failures/"


def reason_of(failure: Mapping[str, Any]) -> str:
    """One line for a failure, whether training itself or a study has written it."""
    if "reason" in failure:
        return str(failure["reason"])
    return f"{failure.get('term')} became {failure.get('value')} at step {failure.get('step')}"
