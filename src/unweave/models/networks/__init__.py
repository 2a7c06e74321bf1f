"""The networks by name."""

from unweave.models.networks.conv import Conv, ConvStudy
from unweave.models.networks.maxout import Maxout
from unweave.models.networks.mlp import MLP, Linear
from unweave.models.networks.network import Network

NETWORKS: dict[str, type[Network]] = {
    "conv": Conv,
    "conv_2x2": ConvStudy,
    "mlp": MLP,
    "linear": Linear,
    "maxout": Maxout,
}
