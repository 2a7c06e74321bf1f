"""Questions that nobody would ask: every one is answered, as the schema says, and none with a server error."""

from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from unweave.web.app import create_app
from unweave.web.guard import Door


@pytest.fixture(scope="module")
def api(made: Path) -> schemathesis.BaseSchema:
    app = create_app(made, Door(("testserver", "127.0.0.1", "localhost")))
    app.state.catalogue.refresh()
    return schemathesis.openapi.from_asgi("/openapi.json", app)


schema = schemathesis.pytest.from_fixture("api")


@schema.parametrize()
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_no_question_breaks_the_server(case: schemathesis.Case) -> None:
    if case.path_parameters and "run_id" in case.path_parameters and len(str(case.path_parameters["run_id"])) % 2:
        case.path_parameters["run_id"] = "one"  # half of all questions go to a run that is there
    case.call_and_validate(checks=[not_a_server_error, status_code_conformance, response_schema_conformance])
