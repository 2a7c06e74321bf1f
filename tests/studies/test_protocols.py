"""What a study's measures were taken with, as a page says it."""

from unweave.studies.measures.measure import protocol_of
from unweave.studies.measures.polarised import Polarised
from unweave.studies.measures.regime import RegimeCourse
from unweave.studies.measures.scores import Scores
from unweave.studies.protocols import protocols_in_words, settings_in_words


def words(*measures: Polarised | RegimeCourse | Scores) -> list[str]:
    return [one.words for one in protocols_in_words({one.file: protocol_of(one) for one in measures})]


def test_what_is_usual_is_left_out_but_for_the_examples() -> None:
    assert words(Polarised(), RegimeCourse(), RegimeCourse(every=20)) == [
        "polarised: 10,000 samples",
        f"regime: settings as usual (its columns are marked {RegimeCourse().file[16:24]})",
        f"regime: every 20 (its columns are marked {RegimeCourse(every=20).file[16:24]})",
    ]
    few = Scores(("mig", "dci"), n_samples=200, options=(("dci", "backend", "sklearn"),))
    assert words(few) == ["scores: metrics mig, dci; 200 samples; options dci backend sklearn"]


def test_the_file_with_its_hash_and_every_setting_stand_behind() -> None:
    (found,) = protocols_in_words({Polarised().file: protocol_of(Polarised())})
    assert found.title == f"{Polarised().file}: n_samples 10,000"
    assert "@" not in found.words


def test_measures_of_strangers_and_of_old_records_are_named_all_the_same() -> None:
    found = protocols_in_words({"measures/mine-1a2b.json": {"depth": 3}, "measures/scores-1a2b.json": {}, "odd": None})
    assert [one.words for one in found] == ["mine: depth 3", "scores: no settings", "odd: no settings"]


def test_columns_of_one_measure_are_told_apart_by_what_differs() -> None:
    files = {one.file: protocol_of(one) for one in (Scores(n_samples=200), Scores(n_samples=3000), Polarised())}
    assert sorted(settings_in_words(files).values()) == ["10,000 samples", "200 samples", "3,000 samples"]
    assert settings_in_words({"measures/mine-1a2b.json": {}, "odd": None}) == {"1a2b": "no settings"}
