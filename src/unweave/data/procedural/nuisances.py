"""The nuisances of Color-, Noisy- and Scream-dSprites (Locatello et al., 2019).

Each is a pure function of sprites in {0, 1} and of uniform draws, batched, on whatever device the sprites are on.
"""

import torch

from unweave.data.world import Nuisance
from unweave.shapes import Float, Int, Tensor, UInt8


class Tint(Nuisance):
    """The sprite in a random bright colour: sprite × U(1/2, 1) per channel."""

    n_draws = 3

    def apply(
        self, images: Float[Tensor, "batch 1 height width"], draws: Float[Tensor, "batch 3"]
    ) -> Float[Tensor, "batch 3 height width"]:
        return images * (0.5 + 0.5 * draws)[:, :, None, None]


class Noise(Nuisance):
    """The sprite in white on uniform noise: min(sprite + U(0, 1), 1) per pixel and channel.

    One draw has 24 random bits, which are three channels of eight: noise at the resolution of a stored image, for a
    third of the cost. A level k of 0 … 255 stands for (k + 1/2) / 256, so that the mean is exactly 1/2.
    """

    def __init__(self, n_pixels: int = 64 * 64) -> None:
        self.n_draws = n_pixels

    def apply(
        self, images: Float[Tensor, "batch 1 height width"], draws: Float[Tensor, "batch pixel"]
    ) -> Float[Tensor, "batch 3 height width"]:
        bits = (draws * 2.0**24).to(torch.int32)
        levels = torch.stack((bits >> 16, (bits >> 8) & 255, bits & 255), dim=1)
        noise = levels.to(images.dtype).add_(0.5).div_(256.0).view(len(images), 3, *images.shape[2:])
        return noise.add_(images).clamp_(max=1.0)


class Backdrop(Nuisance):
    """The sprite as the negative of a picture: a random patch, half mixed with a random colour, inverted under it."""

    n_draws = 5

    def __init__(self, picture: UInt8[Tensor, "3 high wide"]) -> None:
        self.picture = picture
        self._resident: dict[torch.device, Float[Tensor, "3 high wide"]] = {}

    def apply(
        self, images: Float[Tensor, "batch 1 height width"], draws: Float[Tensor, "batch 5"]
    ) -> Float[Tensor, "batch 3 height width"]:
        # a view of all patches, [3, row, column, height, width]: nothing is copied but the chosen ones
        windows = self._on(images.device).unfold(1, images.shape[2], 1).unfold(2, images.shape[3], 1)
        rows, columns = _start(draws[:, 0], windows.shape[1]), _start(draws[:, 1], windows.shape[2])
        patches = windows.movedim(0, 2)[rows, columns]
        # background = (patch + U(0,1)^3) / 2
        background = patches.add_(draws[:, 2:, None, None]).div_(2.0)
        # |sprite - background|: the background where the sprite is 0, its negative where it is 1
        return (images - background).abs_()

    def _on(self, device: torch.device) -> Float[Tensor, "3 high wide"]:
        # copied to a device once, not once a batch
        if device not in self._resident:
            self._resident[device] = self.picture.to(device, torch.float32) / 255.0
        return self._resident[device]


def _start(draw: Float[Tensor, " batch"], n_places: int) -> Int[Tensor, " batch"]:
    """A random place; the last is never taken, as in the reference implementation."""
    return (draw * (n_places - 1)).long().clamp(max=n_places - 2)
