"""All that ``unweave`` offers, one line a name: for editors, and for ``__init__.py``, which imports what is used."""

from unweave.api import compare as compare
from unweave.api import diagnose as diagnose
from unweave.api import dimension as dimension
from unweave.api import intrinsic as intrinsic
from unweave.api import load as load
from unweave.api import perturb as perturb
from unweave.api import resume as resume
from unweave.api import train as train
from unweave.api import world as world
from unweave.api import worlds as worlds
from unweave.evaluation.evaluation import evaluate as evaluate
from unweave.evaluation.measure import Measurer as Measurer
from unweave.evaluation.measure import Yardstick as Yardstick
from unweave.evaluation.measure import measure as measure
from unweave.evaluation.scorer import Scorer as Scorer
from unweave.metrics.polarised.types import variable_types as variable_types
from unweave.models.likelihoods import Bernoulli as Bernoulli
from unweave.models.likelihoods import Gaussian as Gaussian
from unweave.models.likelihoods import LearnedGaussian as LearnedGaussian
from unweave.models.likelihoods import SquaredError as SquaredError
from unweave.models.networks import MLP as MLP
from unweave.models.networks import Conv as Conv
from unweave.models.networks import ConvStudy as ConvStudy
from unweave.models.networks import Linear as Linear
from unweave.models.objectives import AE as AE
from unweave.models.objectives import DIPVAEI as DIPVAEI
from unweave.models.objectives import DIPVAEII as DIPVAEII
from unweave.models.objectives import VAE as VAE
from unweave.models.objectives import AnnealedVAE as AnnealedVAE
from unweave.models.objectives import BetaTCVAE as BetaTCVAE
from unweave.models.objectives import BetaVAE as BetaVAE
from unweave.models.objectives import BetaVAEFull as BetaVAEFull
from unweave.models.objectives import FactorVAE as FactorVAE
from unweave.models.optimisers import AdaGrad as AdaGrad
from unweave.models.optimisers import Adam as Adam
from unweave.studies.run import run_study as run_study
from unweave.studies.study import Study as Study
from unweave.training.experiment import Experiment as Experiment
from unweave.training.experiment import Plan as Plan
from unweave.training.export import export as export
from unweave.training.export import from_pretrained as from_pretrained
from unweave.training.run import Run as Run
from unweave.trusted import trust as trust

__version__: str
