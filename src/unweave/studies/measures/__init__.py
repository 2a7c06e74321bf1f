"""Everything that a study can find out about a run, by name."""

from unweave.config import find
from unweave.studies.measures.accuracy_by_type import AccuracyByType
from unweave.studies.measures.alignment import Alignment
from unweave.studies.measures.by_type import ByType
from unweave.studies.measures.classifier import ClassifierSimilarity
from unweave.studies.measures.code_shapes import CodeShapes
from unweave.studies.measures.codes import Codes
from unweave.studies.measures.decoder import DecoderGeometry
from unweave.studies.measures.downstream import DownstreamAccuracy
from unweave.studies.measures.eigenfaces import Eigenfaces
from unweave.studies.measures.elbow import ElbowPoint
from unweave.studies.measures.fondue import FondueReading
from unweave.studies.measures.intrinsic import IntrinsicDimensions
from unweave.studies.measures.layer_similarity import LayerSimilarity
from unweave.studies.measures.measure import Measure
from unweave.studies.measures.passive import PassiveCorrelations
from unweave.studies.measures.polarised import Polarised
from unweave.studies.measures.principal import PrincipalDirections
from unweave.studies.measures.priors import Priors
from unweave.studies.measures.regime import RegimeCourse
from unweave.studies.measures.scores import Scores
from unweave.studies.measures.spread import Spread
from unweave.studies.measures.told_factors import ToldFactors
from unweave.studies.measures.untrained import UntrainedDecoder

MEASURES: dict[str, type[Measure]] = {
    "accuracy_by_type": AccuracyByType,
    "alignment": Alignment,
    "by_type": ByType,
    "classifier": ClassifierSimilarity,
    "codes": Codes,
    "decoder": DecoderGeometry,
    "downstream": DownstreamAccuracy,
    "eigenfaces": Eigenfaces,
    "elbow": ElbowPoint,
    "fondue": FondueReading,
    "intrinsic": IntrinsicDimensions,
    "layer_similarity": LayerSimilarity,
    "passive": PassiveCorrelations,
    "polarised": Polarised,
    "principal": PrincipalDirections,
    "priors": Priors,
    "regime": RegimeCourse,
    "scores": Scores,
    "shapes": CodeShapes,
    "spread": Spread,
    "told": ToldFactors,
    "untrained": UntrainedDecoder,
}
"""One line a measure; its file stands in this folder."""


def find_measure(name: str) -> Measure:
    """A measure with its usual settings, by its name, that of an installed plug-in, or ``module:Class``."""
    cls = find("measure", name, MEASURES)
    if not (isinstance(cls, type) and issubclass(cls, Measure)):
        raise ValueError(f"{name} is not a measure")
    return cls()
