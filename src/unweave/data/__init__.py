"""The worlds by name."""

from unweave.data.altered import Noise, Perturbed
from unweave.data.cars3d import Cars3D
from unweave.data.celeba import CelebA
from unweave.data.dsprites import ColorDSprites, DSprites, NoisyDSprites, ScreamDSprites
from unweave.data.images import Images
from unweave.data.ivae_toy import IVAEToy
from unweave.data.kitti_masks import KittiMasks
from unweave.data.lpc_sprites import LPCSprites
from unweave.data.micro import Micro
from unweave.data.micro_segments import MicroSegments
from unweave.data.mnist import MNIST, FashionMNIST
from unweave.data.mpi3d import MPI3D
from unweave.data.natural_sprites import NaturalSprites
from unweave.data.pcl_toy import PCLToy
from unweave.data.shapes3d import Shapes3D, Shapes3DLike
from unweave.data.smallnorb import SmallNORB
from unweave.data.symsol import SymSol
from unweave.data.synthetic import SynthLin, SynthNonLin
from unweave.data.table import Table
from unweave.data.world import Data, World

WORLDS: dict[str, type[World]] = {
    "dsprites": DSprites,
    "color_dsprites": ColorDSprites,
    "noisy_dsprites": NoisyDSprites,
    "scream_dsprites": ScreamDSprites,
    "shapes3d": Shapes3D,
    "shapes3d_like": Shapes3DLike,
    "cars3d": Cars3D,
    "smallnorb": SmallNORB,
    "mpi3d": MPI3D,
    "lpc_sprites": LPCSprites,
    "natural_sprites": NaturalSprites,
    "kitti_masks": KittiMasks,
    "micro": Micro,
    "micro_segments": MicroSegments,
    "synth_lin": SynthLin,
    "synth_nonlin": SynthNonLin,
    "ivae_toy": IVAEToy,
    "pcl_toy": PCLToy,
    "mnist": MNIST,
    "fashion_mnist": FashionMNIST,
    "celeba": CelebA,
    "symsol": SymSol,
    "images": Images,
    "table": Table,
    "noise": Noise,
    "perturbed": Perturbed,
}

__all__ = ["WORLDS", "Data", "World"]
