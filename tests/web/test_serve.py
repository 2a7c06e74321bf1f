"""Where the explorer listens, and what the command says before it does."""

import socket
from pathlib import Path

import pytest

from unweave.cli import main
from unweave.cli.explore import find_store
from unweave.web.serve import address_of, door_for, listen


def test_loopback_needs_no_token_and_elsewhere_does() -> None:
    own = door_for("127.0.0.1")
    assert own.token is None
    assert own.knows("localhost:8750")
    assert own.knows("[::1]:8750")
    assert not own.knows("192.0.2.1")
    assert not own.knows("evil.example")
    away = door_for("0.0.0.0", ("lab.example",))
    assert away.token is not None
    assert len(away.token) >= 24
    assert away.token != door_for("0.0.0.0").token
    assert away.knows("192.0.2.1:8750")
    assert away.knows("lab.example:8750")
    assert not away.knows("evil.example")
    assert not door_for("192.0.2.1").knows("192.0.2.2")
    for host in ("", "[", "[::1", "a b", "127.0.0.1@evil.example", "127.0.0.1:80:80", "evil.example#127.0.0.1"):
        assert not own.knows(host), host


def test_a_port_in_use_is_passed_over() -> None:
    with listen("127.0.0.1", 0) as first:
        assert first.proto == socket.IPPROTO_TCP  # or answers wait for an acknowledgement
        taken = first.getsockname()[1]
        with listen("127.0.0.1", taken) as second:
            assert second.getsockname()[1] != taken
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1"):
        listen("192.0.2.1", 8750)


def test_addresses() -> None:
    assert address_of("127.0.0.1", 8750, "/run/a b", None) == "http://127.0.0.1:8750/run/a%20b"
    assert address_of("::1", 8750, "/", None) == "http://[::1]:8750/"
    assert address_of("0.0.0.0", 8750, "/", "t") == f"http://{socket.gethostname()}:8750/?token=t"


def test_a_run_opens_the_store_around_it(made: Path, tmp_path: Path) -> None:
    assert find_store(str(made)) == (made.resolve(), "/")
    assert find_store(str(made / "one")) == (made.resolve(), "/run/one")
    with pytest.raises(ValueError, match="is no folder; train something first"):
        find_store(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("words", "message"), [("nowhere", "nowhere is no folder"), ("--prot 1", "Did you mean port or host?")]
)
def test_bad_input_is_answered_in_one_sentence(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", *words.split()]) == 2
    told = capsys.readouterr().err.strip()
    assert message in told
    assert "\n" not in told
