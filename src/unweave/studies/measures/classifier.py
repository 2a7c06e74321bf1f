"""How alike a run's encoder and a classifier with the same encoder are, layer by layer (Bonheme, 2023, App. C.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.algorithms.classifier import Lesson, classifier_layers, train_classifier
from unweave.evaluation.activations import activations
from unweave.evaluation.similarity import compact
from unweave.metrics.similarity.cka import cka_matrix
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class ClassifierSimilarity(Measure):
    """CKA of all layers of a run (rows) with those of a classifier (columns), trained here with the run's own seed.

    The classifier learns every factor of the world; the source does not say which labels its classifiers learned.
    """

    name: ClassVar[str] = "classifier"
    n_samples: int = 5_000
    steps: int = 30_000
    objective: str = ""
    """Only runs of this objective are held against a classifier, the others pass with nothing."""

    def __call__(self, run: Run) -> Mapping[str, Any]:
        experiment = run.experiment
        if self.objective and experiment.objective.name != self.objective:
            return {}
        rate = getattr(experiment.optimiser, "learning_rate", 1e-4)
        lesson = Lesson(self.steps, experiment.batch_size, float(rate), experiment.seed, experiment.init)
        model = train_classifier(experiment.network, run.data, lesson, run.device)
        images = run.images(self.n_samples)
        theirs = classifier_layers(model, images.to(run.device))
        ours = activations(run.model, images, run.labels(self.n_samples), seed=experiment.seed)
        pairs = [compact(layer) for layer in ours.layers], [compact(layer) for layer in theirs.values()]
        scores = cka_matrix(*pairs, estimator="biased").scores
        return {
            "rows": list(ours.names),
            "columns": list(theirs),
            "n_encoder": ours.n_encoder,
            "cka": scores.double().round(decimals=5).tolist(),
        }
