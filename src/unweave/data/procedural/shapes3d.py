"""An imitation of Shapes3D (Burgess and Kim, 2018), ray cast on the published factor grid.

Room, camera and solids are as fitted to fifty genuine images; the lamp is a spot that points nearly straight down,
which is what makes the far floor dark there. Hues only recolour, and a channel of the ten hues takes six levels only:
480 views (scale, shape, orientation) of 21 planes hold everything, and a channel of an image is the sum of four planes.
"""

import colorsys
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from unweave.data.world import Composition
from unweave.shapes import Float, Int, Tensor, UInt8

SIZES = (10, 10, 10, 8, 4, 15)
"""Floor hue, wall hue, object hue, scale, shape (cube, cylinder, sphere, capsule), orientation."""

N_VIEWS = 8 * 4 * 15
PIXELS = 64
FOCAL_LENGTH = 63.1
CAMERA_DISTANCE, CAMERA_HEIGHT, LOOKS_AT = 7.955, 2.853, 2.653
ROOM_HALF_WIDTH, WALL_HEIGHT = 10.0, 6.65
SMALLEST = 0.324
CUBE, CYLINDER, SPHERE, CAPSULE = 1.584, (1.637, 1.854), 1.747, (1.503, 3.167)
"""Half-side; radius and half-height; radius; radius and half-height, all at full scale."""

SKY = (153 / 255, 226 / 255, 249 / 255)
AMBIENT, HEADLIGHT, LAMP, SPECULAR, SHININESS = 0.472, 0.454, 0.842, 0.253, 20.3
LAMP_AT, LAMP_AIMS_AT = np.array([-5.3, 20.32, 1.47], np.float32), np.array([-4.17, 0.0, -1.09], np.float32)
LAMP_CONE = 11.1
UP = np.array([0.0, 1.0, 0.0], np.float32)
NEAR = 1e-4

N_LEVELS = 6
"""A channel of HSV (k/10, 1, 1) is a multiple of 1/5."""

N_PLANES = 3 * N_LEVELS + 3
"""Floor, wall and object at every level, then the three channels of the sky."""


def render_views(supersample: int = 2) -> np.ndarray:
    """The planes of all 480 views, uint8 [view, plane, height, width]; views in the order of the factors."""
    _, _, _, n_scales, n_shapes, n_orientations = SIZES
    grid = np.ndindex(n_scales, n_shapes, n_orientations)
    return np.stack([render_view(scale, shape, turn, supersample) for scale, shape, turn in grid])


def render_view(scale: int, shape: int, orientation: int, supersample: int = 1) -> np.ndarray:
    """What each plane adds to a pixel, uint8 [plane, height, width]."""
    size = SMALLEST + (1 - SMALLEST) * scale / (SIZES[3] - 1)
    angle = math.radians(-30 + 60 * orientation / (SIZES[5] - 1))
    eye, forward, rays = _camera(angle, supersample)
    material, point, normal = _scene(eye, rays, shape, size)
    shade, highlight = _light(point, normal, -rays, -forward, lambda at, to: _solid(shape, at, to, size).distance)
    levels = np.arange(N_LEVELS, dtype=np.float32)[:, None, None] / (N_LEVELS - 1)
    # value = clip(shade · level + highlight)
    painted = np.clip(shade * levels + highlight, 0.0, 1.0)
    sky = np.array(SKY, np.float32)[:, None, None] * (material == NOTHING)
    planes = np.concatenate([*(painted * (material == which) for which in (FLOOR, WALL, OBJECT)), sky])
    mean = planes.reshape(N_PLANES, PIXELS, supersample, PIXELS, supersample).mean(axis=(2, 4)) * 255
    # where materials meet their shares are rounded down, so that the sum of the planes stays a byte
    corners = material.reshape(PIXELS, supersample, PIXELS, supersample)
    alone = corners.min(axis=(1, 3)) == corners.max(axis=(1, 3))
    return np.where(alone, np.rint(mean), np.floor(mean)).astype(np.uint8)


def palette() -> np.ndarray:
    """The ten hues, HSV (k/10, 1, 1), as float32 [hue, channel]."""
    return np.array([colorsys.hsv_to_rgb(k / 10, 1.0, 1.0) for k in range(10)], dtype=np.float32)


@dataclass(frozen=True)
class Recoloured(Composition):
    """Images from (view, floor hue, wall hue, object hue); ``levels`` are the levels of the hues' channels."""

    planes: UInt8[Tensor, "view_and_plane pixel"]
    levels: Int[Tensor, "hue channel"]

    @classmethod
    def of(cls, views: np.ndarray) -> "Recoloured":
        """From the array that :func:`render_views` makes."""
        levels = np.rint(palette() * (N_LEVELS - 1)).astype(np.int64)
        return cls(torch.from_numpy(views).view(-1, PIXELS * PIXELS), torch.from_numpy(levels))

    def compose(self, parts: Int[Tensor, "batch part"]) -> Float[Tensor, "batch channel height width"]:
        view, *hues = parts.long().unbind(-1)
        first = view[:, None] * N_PLANES
        image = self._rows(first + 3 * N_LEVELS + torch.arange(3, device=view.device))
        for material, hue in enumerate(hues):
            image += self._rows(first + material * N_LEVELS + self.levels[hue])
        return image.to(torch.float32).div_(255.0).view(-1, 3, PIXELS, PIXELS)

    def to(self, device: torch.device | str) -> Composition:
        return type(self)(self.planes.to(device), self.levels.to(device))

    def _rows(self, rows: Int[Tensor, "batch channel"]) -> UInt8[Tensor, "batch_and_channel pixel"]:
        return self.planes.index_select(0, rows.flatten())


NOTHING, FLOOR, WALL, OBJECT = range(4)


class _Hit(NamedTuple):
    distance: np.ndarray
    normal: np.ndarray


def _camera(angle: float, supersample: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the camera is, where it looks, and the unit direction of every ray."""
    eye = np.array([CAMERA_DISTANCE * math.sin(angle), CAMERA_HEIGHT, CAMERA_DISTANCE * math.cos(angle)], np.float32)
    forward = _unit(np.array([0.0, LOOKS_AT, 0.0], np.float32) - eye)
    right = _unit(np.cross(forward, UP))
    across = ((np.arange(PIXELS * supersample) + 0.5) / supersample - PIXELS / 2).astype(np.float32)
    x, y = np.meshgrid(across, across)
    rays = x[..., None] * right - y[..., None] * np.cross(right, forward) + FOCAL_LENGTH * forward
    return eye, forward, _unit(rays)


def _scene(eye: np.ndarray, rays: np.ndarray, shape: int, size: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What each ray meets first: the material, the point and the surface normal."""
    solid = _solid(shape, eye, rays, size)
    floor = _Hit(np.where(rays[..., 1] < 0, -eye[1] / rays[..., 1], np.inf), np.broadcast_to(UP, rays.shape))
    # a wall of the room stands where a ray from inside leaves the square
    leave = (np.sign(rays) * ROOM_HALF_WIDTH - eye) / rays
    sideways = (leave[..., 0] < leave[..., 2])[..., None]
    wall_normal = -np.sign(rays) * np.where(sideways, np.array([1, 0, 0], np.float32), np.array([0, 0, 1], np.float32))
    wall = _Hit(np.minimum(leave[..., 0], leave[..., 2]), wall_normal)
    distances = np.stack([floor.distance, wall.distance, solid.distance])
    first = distances.argmin(axis=0)
    point = eye + distances.min(axis=0)[..., None] * rays
    normal = _pick(first, [floor.normal, wall.normal, solid.normal])
    material = np.where((first + 1 == WALL) & (point[..., 1] > WALL_HEIGHT), NOTHING, first + 1)
    return material, point, normal


def _light(
    point: np.ndarray,
    normal: np.ndarray,
    viewer: np.ndarray,
    headlight: np.ndarray,
    obstacle: Callable[..., np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """How bright the surface's own colour and the white highlight are (Blinn-Phong, one hard shadow)."""
    to_lamp = _unit(LAMP_AT - point)
    lit = ~np.isfinite(obstacle(point + 1e-3 * normal, to_lamp))
    beam = lit * np.clip(_dot(to_lamp, _unit(LAMP_AT - LAMP_AIMS_AT)), 0.0, 1.0) ** LAMP_CONE
    # shade = ambient + headlight · (n·h) + lamp · (n·l) · (cone)
    shade = AMBIENT + HEADLIGHT * _facing(normal, headlight) + LAMP * _facing(normal, to_lamp) * beam
    return shade, SPECULAR * beam * _facing(normal, _unit(to_lamp + viewer)) ** SHININESS


def _facing(normal: np.ndarray, direction: np.ndarray) -> np.ndarray:
    return np.maximum(_dot(normal, direction), 0.0)


def _solid(shape: int, origin: np.ndarray, rays: np.ndarray, size: float) -> _Hit:
    """The solid that stands on the floor at the centre of the room."""
    if shape == 0:
        return _cube(origin, rays, CUBE * size)
    if shape == 1:
        radius, half = CYLINDER[0] * size, CYLINDER[1] * size
        return _nearest(_tube(origin, rays, radius, 0.0, 2 * half), _lid(origin, rays, radius, 2 * half))
    if shape == 2:
        return _ball(origin, rays, SPHERE * size, SPHERE * size)
    radius, half = CAPSULE[0] * size, CAPSULE[1] * size
    ends = [_ball(origin, rays, radius, height) for height in (radius, 2 * half - radius)]
    return _nearest(_tube(origin, rays, radius, radius, 2 * half - radius), *ends)


def _cube(origin: np.ndarray, rays: np.ndarray, half: float) -> _Hit:
    centre = half * UP
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (centre - half - origin) / rays, (centre + half - origin) / rays
    enter, leave = np.minimum(low, high), np.maximum(low, high)
    distance = enter.max(axis=-1)
    inside = (distance < leave.min(axis=-1)) & (distance > NEAR)
    face = np.eye(3, dtype=np.float32)[enter.argmax(axis=-1)]
    return _Hit(np.where(inside, distance, np.inf), -np.sign(rays) * face)


def _ball(origin: np.ndarray, rays: np.ndarray, radius: float, height: float) -> _Hit:
    from_centre = origin - height * UP
    # |o + t r − c|² = R²
    half_b = _dot(from_centre, rays)
    inside = half_b**2 - _dot(from_centre, from_centre) + radius**2
    distance = _ahead(-half_b - np.sqrt(np.maximum(inside, 0.0)), inside > 0)
    return _Hit(distance, (from_centre + _finite(distance)[..., None] * rays) / radius)


def _tube(origin: np.ndarray, rays: np.ndarray, radius: float, bottom: float, top: float) -> _Hit:
    flat = np.array([1.0, 0.0, 1.0], np.float32)
    a, half_b = _dot(rays * flat, rays), _dot(origin * flat, rays)
    inside = half_b**2 - a * (_dot(origin * flat, origin) - radius**2)
    distance = _ahead((-half_b - np.sqrt(np.maximum(inside, 0.0))) / np.maximum(a, 1e-12), inside > 0)
    point = origin + _finite(distance)[..., None] * rays
    within = (point[..., 1] >= bottom) & (point[..., 1] <= top)
    return _Hit(np.where(within, distance, np.inf), point * flat / radius)


def _lid(origin: np.ndarray, rays: np.ndarray, radius: float, height: float) -> _Hit:
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (height - origin[..., 1]) / rays[..., 1]
    point = origin + _finite(distance)[..., None] * rays
    within = point[..., 0] ** 2 + point[..., 2] ** 2 <= radius**2
    return _Hit(_ahead(distance, within), np.broadcast_to(UP, rays.shape))


def _nearest(*hits: _Hit) -> _Hit:
    distances = np.stack([hit.distance for hit in hits])
    return _Hit(distances.min(axis=0), _pick(distances.argmin(axis=0), [hit.normal for hit in hits]))


def _pick(which: np.ndarray, options: list[np.ndarray]) -> np.ndarray:
    picked = options[0]
    for place, option in enumerate(options[1:], start=1):
        picked = np.where((which == place)[..., None], option, picked)
    return picked


def _ahead(distance: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return np.where(wanted & (distance > NEAR), distance, np.inf)


def _finite(distance: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(distance), distance, 0.0)


def _dot(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("...i,...i->...", one, other))


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.sqrt(_dot(vector, vector))[..., None]
