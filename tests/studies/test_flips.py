"""One flipped bit anywhere in a store: the same answers, or a row that says it is damaged, or one sentence."""

import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tiny_studies import tiny_study

from unweave.cli import main
from unweave.runs.folder import RunFolder
from unweave.sealed import sealed, unsealed
from unweave.studies.leases import Holder
from unweave.studies.measures import Polarised
from unweave.studies.record import DamagedRecord, read_record
from unweave.studies.repair import CheckedFolders
from unweave.studies.run import run_study
from unweave.studies.store import Store
from unweave.web.app import create_app
from unweave.web.catalogue import Catalogue
from unweave.web.store import ReadOnlyStore

KINDS = {
    "index": ".unweave/index.parquet",
    "its checksum": ".unweave/index.sha256",
    "version": ".unweave/version",
    "checked folders": ".unweave/checked.json",
    "checked weights": ".unweave/weights.json",
    "record": ".unweave/studies/tiny.json",
    "progress": ".unweave/studies/tiny.progress.json",
    "holder": ".unweave/holders/*",
    "report": ".unweave/reports/tiny/results.csv",
    "list": "*/SHA256SUMS",
    "config": "*/config.json",
    "history": "*/history.parquet",
    "weights": "*/model.safetensors",
    "measure": "*/measures/*.json",
    "scores": "*/scores.json",
    "cost": "*/cost.json",
    "failure": "*/failure.json",
    "failed measure": "*/failures/*.json",
    "environment": "*/environment.json",
    "checkpoint": "*/checkpoints/*",
    "fleet": "fleet-*/fleet.json",
    "member": "*/member.json",
}

Answers = dict[str, Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small store with every kind of file; in version 0.1.0's words as well as in ours."""
    root = tmp_path_factory.mktemp("flips") / "runs"
    study = tiny_study(3)
    run_study(replace(study, measures=(Polarised(32), Polarised(16))), root)
    store = Store(root)
    ids = store.ids()
    scored = ["--samples", "60", "--seeds", "0", "--metrics", "mig", "--interventions", "table", "--no-pictures"]
    assert main(["evaluate", str(root / ids[0]), *scored, "--quiet"]) == 0
    RunFolder(root / ids[0]).write_json("failures/raises-0123abcd.json", {"reason": "ValueError: no"})
    lines = (root / ids[1] / "SHA256SUMS").read_text().splitlines(keepends=True)
    (root / ids[1] / "SHA256SUMS").write_text("".join(line for line in lines if not line.startswith("#")))
    home = RunFolder(root / "fleet-0123456789ab")
    home.write_json("fleet.json", ["member"])
    home.write("checkpoints/step-000000003.safetensors", b"state of all")
    for name in ("member", "failed"):
        shutil.copytree(root / ids[2], root / name)
        RunFolder(root / name).remove("model.safetensors")
    RunFolder(root / "member").write_json("member.json", {"fleet": home.path.name, "place": 0})
    RunFolder(root / "member").write("checkpoints/step-000000004.safetensors", b"state")
    RunFolder(root / "failed").write_json("failure.json", {"step": 3, "term": "kl", "value": "nan"})
    report = RunFolder(store.home / "reports" / "tiny")
    report.write("results.csv", "what,published,ours,verdict\nMIG,0.25,0.2,agrees\n")
    CheckedFolders(store.home).problems([store.folder(run_id) for run_id in ids])
    _dead_holder(store, "member")
    return root


def _dead_holder(store: Store, run_id: str) -> None:
    with Holder(store.home) as holder:
        assert holder.take(run_id)
        content = unsealed(holder.file.read_bytes()) | {"pid": 2**22 - 1, "born": "1"}
        kept, leases = sealed(content), [(path, os.readlink(path)) for path in holder.leases.iterdir()]
    (store.home / "holders" / holder.token).write_text(kept)
    for path, token in leases:
        os.symlink(token, path)


def _rows(table: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Rows by id, without what is not there: a damaged row takes the columns away that only it had."""
    return {row["id"]: {key: value for key, value in row.items() if value is not None} for row in table.to_dicts()}


def _table(root: Path) -> Answers:
    return _rows(Store(root).table())


def _sql(root: Path) -> Answers:
    return _rows(Store(root).sql("select * from runs"))


def _explored(root: Path) -> Answers:
    catalogue = Catalogue(ReadOnlyStore(root))
    catalogue.refresh()
    left = ("modified",)
    return {
        run_id: {key: value for key, value in row.items() if value is not None and key not in left}
        for run_id, row in catalogue.rows().items()
    }


def _asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    said = capsys.readouterr()
    return code, said.out, said.err.strip()


def _differs(before: Answers, after: Answers) -> str:
    """What two tables disagree about without saying so; empty where nothing is silent."""
    for run_id in before | after:
        row, now = before.get(run_id), after.get(run_id)
        if now is not None and now["state"] == "damaged" and now.get("failure"):
            continue
        if row != now:
            return f"{run_id}: {row} became {now}"
    return ""


class Flips:
    """A copy of a store, its answers, and one flip at a time."""

    def __init__(self, whole: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = Path(shutil.copytree(whole, place / "runs", symlinks=True))
        self.capsys, self.seen = capsys, Counter[str]()
        self.looks: dict[str, Callable[[Path], Answers]] = {"table": _table, "sql": _sql, "explorer": _explored}
        self.before = {name: look(self.root) for name, look in self.looks.items()}
        self.status = self._status()

    def _status(self) -> tuple[int, Any, str]:
        code, out, error = _asked(self.capsys, "study", "status", "tiny", "--store", str(self.root), "--json")
        return code, json.loads(out) if out else None, error

    def flip(self, draw: random.Random, kind: str) -> None:
        """Flip one bit of a file of some kind, ask everything, and put it back."""
        file = draw.choice(sorted(self.root.glob(KINDS[kind])))
        content, found = file.read_bytes(), file.stat()
        place, bit = draw.randrange(len(content)), draw.randrange(8)
        cold, quietly = draw.random() < 0.5, draw.random() < 0.3
        if cold and ".unweave/index" not in KINDS[kind]:
            (self.root / ".unweave" / "index.parquet").unlink(missing_ok=True)
        file.write_bytes(content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])
        if quietly:  # as a disk does it: no time changes
            os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
        where = f"{kind} {file.relative_to(self.root)} byte {place} bit {bit} cold {cold} quietly {quietly}"
        try:
            self._ask(where)
        finally:
            file.write_bytes(content)
        if file.name == "index.parquet":
            _table(self.root)

    def _ask(self, where: str) -> None:
        for name, look in self.looks.items():
            try:
                after = look(self.root)
            except ValueError as error:
                if not where.startswith("version"):
                    pytest.fail(f"{where}: {name}: {error!r}")
                self.seen["one sentence"] += 1
                continue
            assert not (told := _differs(self.before[name], after)), f"{where}: {name}: {told}"
            self.seen["as before" if after == self.before[name] else "a damaged row"] += 1
        code, said, error = self._status()
        if error:
            assert (code, "\n" in error) == (2, False), f"{where}: {error}"
            self.seen["one sentence"] += 1
            return
        assert said["total"] == self.status[1]["total"]
        lost = said["damaged"] - self.status[1]["damaged"]
        for state in ("done", "running", "failed", "waiting"):
            assert 0 <= self.status[1][state] - said[state] <= lost, f"{where}: {said}"
        assert said["models_per_day"] in (None, self.status[1]["models_per_day"]), where
        self.seen["as before" if not lost else "a damaged row"] += 1


def _flipped(flips: Flips, n: int, seed: int) -> Counter[str]:
    draw = random.Random(seed)
    kinds = list(KINDS)
    for number in range(n):
        flips.flip(draw, kinds[number % len(kinds)])
    assert {name: look(flips.root) for name, look in flips.looks.items()} == flips.before
    return flips.seen


def test_every_kind_of_file_is_there(whole: Path) -> None:
    Store(whole).table()
    for kind, pattern in KINDS.items():
        assert list(whole.glob(pattern)), kind


def test_a_flipped_bit_is_noticed_or_does_nothing(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")
    seen = _flipped(Flips(whole, tmp_path, capsys), 2 * len(KINDS), 0)
    assert sum(seen.values()) == 4 * 2 * len(KINDS)
    assert min(seen["as before"], seen["a damaged row"], seen["one sentence"]) > 0


@pytest.mark.slow
def test_a_thousand_flipped_bits(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    seen = _flipped(Flips(whole, tmp_path, capsys), 1000, 1)
    assert sum(seen.values()) == 4000
    with capsys.disabled():
        print(dict(seen))


def test_a_studys_page_in_the_explorer_says_what_is_damaged(whole: Path, tmp_path: Path) -> None:
    from fastapi.testclient import TestClient

    root = Path(shutil.copytree(whole, tmp_path / "runs", symlinks=True))
    report = root / ".unweave" / "reports" / "tiny" / "results.csv"
    with TestClient(create_app(root), base_url="http://127.0.0.1") as client:
        assert client.get("/api/studies/tiny").json()["marks"][0]["value"] == 0.25
        report.write_text(report.read_text().replace("0.25", "0.75"))
        found = client.get("/api/studies/tiny").json()
        assert (found["marks"], "results.csv is damaged" in found["note"]) == ([], True)
        record = root / ".unweave" / "studies" / "tiny.json"
        record.write_text(record.read_text().replace('"tiny"', '"tinz"'))
        titles = {one["name"]: one["title"] for one in client.get("/api/store").json()["studies"]}
        assert titles["tiny"] == "tiny (its record is damaged)"
        answer = client.get("/api/studies/tiny")
        assert (answer.status_code, "is damaged" in answer.json()["detail"]) == (410, True)


def test_a_damaged_record_is_one_sentence_and_is_written_anew(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(shutil.copytree(whole, tmp_path / "runs", symlinks=True))
    study = replace(tiny_study(3), measures=(Polarised(32), Polarised(16)))
    run_study(replace(study, name="other"), root)
    record = root / ".unweave" / "studies" / "tiny.json"
    record.write_text(record.read_text().replace('"title": ""', '"title": "?"'))
    code, out, error = _asked(capsys, "study", "status", "--store", str(root), "--json")
    assert (code, [one["name"] for one in json.loads(out)]) == (2, ["other"])
    assert "the record of the study tiny is damaged" in error
    assert "\n" not in error
    run_study(study, root)
    assert _asked(capsys, "study", "status", "--store", str(root))[0] == 0


def test_a_record_of_version_0_1_0_is_accepted_once(whole: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(whole, tmp_path / "runs", symlinks=True))
    file = root / ".unweave" / "studies" / "tiny.json"
    plain = unsealed(file.read_bytes())
    file.write_text(json.dumps({key: plain[key] for key in plain if key not in ("version", "protocols")}, indent=1))
    before = read_record(root / ".unweave", "tiny")
    assert "sha256" in json.loads(file.read_text())
    assert read_record(root / ".unweave", "tiny") == before
    file.write_text(file.read_text().replace("micro", "macro", 1))
    with pytest.raises(DamagedRecord):
        read_record(root / ".unweave", "tiny")


def test_a_panic_of_polars_is_an_index_made_again(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(shutil.copytree(whole, tmp_path / "runs", symlinks=True))
    before = _table(root)

    def panic(*_: object) -> None:
        raise pl.exceptions.PanicException("range end index out of range")

    monkeypatch.setattr(pl, "read_parquet", panic)
    assert _table(root) == before
    monkeypatch.setattr(pl, "read_parquet", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        Store(root).table()
