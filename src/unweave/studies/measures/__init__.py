"""Everything that a study can find out about a run, by name."""

from unweave.studies.measures.measure import Measure
from unweave.studies.measures.polarised import Polarised

MEASURES: dict[str, type[Measure]] = {
    "polarised": Polarised,
}
"""One line a measure; its file stands in this folder."""
