"""What happens before the first step and after the last: nothing heavy is imported, and folders do not wait in line."""

import subprocess
import sys
import threading

import pytest

from unweave.training.results import for_all

TRAINS = """
import sys
from unweave.data.synthetic import SynthLin
from unweave.models.networks import Linear
from unweave.studies.plan import plan
from unweave.training.experiment import Experiment, Plan
from unweave.training.many import train_many
settings = {"network": Linear(), "latents": 2, "steps": 2, "plan": Plan("cpu", 1)}
small = [Experiment(SynthLin(n_points=100), seed=seed, **settings) for seed in range(3)]
train_many(list(plan(small).values()), sys.argv[1])
print(sorted({"torch._dynamo", "torch._inductor"} & {*sys.modules}))
"""


def test_training_does_not_import_the_compiler(tmp_path):
    done = subprocess.run([sys.executable, "-c", TRAINS, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_many_are_at_work_at_once_and_answer_in_order():
    meeting = threading.Barrier(8, timeout=20)

    def work(item):
        meeting.wait()  # passes only where eight have come
        return 10 * item

    assert for_all(work, range(8)) == [10 * item for item in range(8)]


def test_a_failure_of_one_is_raised():
    def work(item):
        if item == 3:
            raise OSError("full")
        return item

    with pytest.raises(OSError, match="full"):
        for_all(work, range(5))


@pytest.mark.parametrize("estimator", ["batch", "stratified"])
def test_activations_are_counted_for_losses_that_compare_examples(estimator):
    from unweave.data.micro import Micro
    from unweave.models.networks import MLP
    from unweave.models.objectives.beta_tcvae import BetaTCVAE
    from unweave.training.experiment import Experiment, Form, Plan
    from unweave.training.fleet.choice import models_that_fit

    given = Experiment(Micro(), BetaTCVAE(estimator=estimator), MLP((8,), (8,)), plan=Plan("cpu", 1)).resolve()
    assert models_that_fit(given, Form((1, 32, 32))) > 1
