"""The random decoder: distance to orthogonality before the first step of training (Zietlow, 2022, Table 3.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from unweave.metrics.geometry.jacobian import decoder_gram
from unweave.metrics.geometry.orthogonality import dto
from unweave.models.initialise import initialise
from unweave.studies.measures.measure import Measure
from unweave.training.experiment import form_of
from unweave.training.run import Run


@dataclass(frozen=True)
class UntrainedDecoder(Measure):
    """The decoder that a run started with, at the codes that its first encoder gave: a baseline for DtO."""

    name: ClassVar[str] = "untrained"
    n_jacobians: int = 256

    @torch.no_grad()
    def __call__(self, run: Run) -> Mapping[str, Any]:
        experiment = run.experiment
        form = form_of(experiment.objective, run.data)
        model: Any = experiment.objective.model(experiment.architecture(form.shape, form.labels)).eval()
        initialise(model, experiment.init, experiment.seed)
        labels = run.labels(self.n_jacobians)
        told = () if labels is None else (labels,)
        means = model.encode(run.images(self.n_jacobians), *told).mean
        return {"dto": dto(decoder_gram(model.decode, means)).score}
