"""Questions that nobody would ask: every one is answered, as the schema says, and none with a server error."""

from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from unweave.web.app import create_app
from unweave.web.guard import Door

CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]
RUNS = ("one", "flat", "unfinished", "nowhere")


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")  # schemathesis draws by itself
def test_no_question_breaks_the_server(made: Path) -> None:
    app = create_app(made, Door(("testserver", "127.0.0.1", "localhost")))
    app.state.catalogue.refresh()
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    asked: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        asked[operation.label] = fuzz(operation)
    assert len(asked) >= 17
    assert any(200 in statuses for statuses in asked.values())
    assert any(404 in statuses for statuses in asked.values())


def fuzz(operation: schemathesis.schemas.APIOperation) -> set[int]:
    """Ask one route; the statuses that came back."""
    statuses = set()

    @settings(max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def ask(case: schemathesis.Case) -> None:
        given_id = str((case.path_parameters or {}).get("run_id", ""))
        if given_id and len(given_id) % 2:
            case.path_parameters["run_id"] = RUNS[len(given_id) // 2 % len(RUNS)]  # half ask for what is there
        answer = case.call()
        statuses.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    ask()
    return statuses
