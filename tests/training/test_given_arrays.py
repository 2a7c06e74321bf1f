"""Images and codes as people give them: any kind, one or many; what does not fit is refused in a sentence."""

import numpy as np
import pytest
import torch
from PIL import Image

from unweave.training.given_arrays import as_codes, as_images

GREY, COLOUR = (1, 6, 8), (3, 6, 8)


def bytes_of(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize(
    ("shape", "given"), [(GREY, (6, 8)), (GREY, (1, 6, 8)), (COLOUR, (3, 6, 8)), (COLOUR, (6, 8, 3))]
)
def test_one_image_of_any_form(shape: tuple[int, ...], given: tuple[int, ...]):
    image = bytes_of(*given)
    wanted = torch.from_numpy(image).float() / 255
    wanted = wanted.permute(2, 0, 1) if given[-1] == 3 else wanted.reshape(shape)
    for one in (image, torch.from_numpy(image), image.tolist() and (image / 255), image.astype(np.float64) / 255):
        torch.testing.assert_close(as_images(one, shape), wanted[None])


@pytest.mark.parametrize(
    ("shape", "given"), [(GREY, (5, 6, 8)), (GREY, (5, 1, 6, 8)), (GREY, (5, 6, 8, 1)), (COLOUR, (5, 6, 8, 3))]
)
def test_many_images_of_any_form(shape: tuple[int, ...], given: tuple[int, ...]):
    images = bytes_of(*given)
    found = as_images(images, shape)
    assert found.shape == (5, *shape)
    for place in range(5):
        torch.testing.assert_close(found[place], as_images(images[place], shape)[0])
    torch.testing.assert_close(as_images(list(torch.from_numpy(images)), shape), found)


def test_pictures_of_pillow():
    image = bytes_of(6, 8, 3)
    torch.testing.assert_close(as_images(Image.fromarray(image), COLOUR), as_images(image, COLOUR))
    assert as_images([Image.fromarray(image)] * 2, COLOUR).shape == (2, *COLOUR)


def test_points_are_rows_of_numbers():
    assert as_images([1, 2, 300], (3,)).tolist() == [[1.0, 2.0, 300.0]]
    assert as_images(np.zeros((4, 3)), (3,)).shape == (4, 3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            np.zeros((28, 28)),
            r"examples of 1 × 6 × 8 \(channels × height × width\), one or many, and was given 28 × 28",
        ),
        (3.0, "was given a single number"),
        (np.full((6, 8), np.nan), "not finite"),
        (np.full((6, 8), 200.0), "go up to 200: divide by 255"),
        ("cat.png", "not str"),
        ([[1, 2], [3]], "not list"),
        (np.zeros((6, 8), complex), "complex numbers"),
    ],
)
def test_images_that_do_not_fit_are_refused(given: object, words: str):
    with pytest.raises(ValueError, match=words):
        as_images(given, GREY)


def test_codes():
    assert as_codes([0, 1, 2], 3).tolist() == [[0.0, 1.0, 2.0]]
    assert as_codes(np.zeros((4, 3)), 3).dtype == torch.float32
    with pytest.raises(ValueError, match="this model has 3 latents, so codes are rows of 3 numbers; given 4 × 2"):
        as_codes(np.zeros((4, 2)), 3)
    with pytest.raises(ValueError, match="given a single number"):
        as_codes(1.0, 3)


def test_brightness_just_inside_is_taken_and_just_outside_is_not():
    image = np.zeros((6, 8))
    for value, taken in ((2.0, True), (2.01, False), (-0.5, True), (-0.51, False)):
        image[1, 2] = value
        if taken:
            assert as_images(image, GREY)[0, 0, 1, 2] == pytest.approx(value)
        else:
            with pytest.raises(ValueError, match=r"go (up to 2\.01: divide by 255|down to -0\.51)"):
                as_images(image, GREY)
    assert as_images(np.full((1, 3), 300.0), (3,)).tolist() == [[300.0] * 3], "rows of a table are no pictures"
    assert as_codes([300.0, -300.0], 2).tolist() == [[300.0, -300.0]]
    assert as_images(np.zeros((0, 6, 8)), GREY).shape == (0, 1, 6, 8)
    assert as_images(np.array([[0, 128, 255]], np.uint8), (3,)).tolist() == [[0.0, pytest.approx(128 / 255), 1.0]]


def test_axes_are_read_the_plainest_way_first():
    # eight images of 3 × 8 × 8 or of 8 × 8 with channels last: three channels decide
    square = (3, 3, 3)
    images = bytes_of(3, 3, 3)
    torch.testing.assert_close(as_images(images, square)[0], torch.from_numpy(images).float() / 255)
    many = bytes_of(2, 3, 3, 3)
    torch.testing.assert_close(as_images(many, square), torch.from_numpy(many).float() / 255)
    with pytest.raises(ValueError, match="was given 2 × 3 × 6 × 8 × 1"):
        as_images(np.zeros((2, 3, 6, 8, 1)), COLOUR)
    with pytest.raises(ValueError, match=r"examples of 3 \(numbers\), one or many, and was given 2 × 2"):
        as_images(np.zeros((2, 2)), (3,))
    with pytest.raises(ValueError, match=r"was given 6 × 8$"):
        as_images(np.zeros((6, 8)), COLOUR)


def test_arrays_of_other_byte_orders_and_locked_ones_are_read_and_left_as_they_are():
    locked = np.arange(3.0)
    locked.flags.writeable = False
    assert as_codes(locked, 3).tolist() == [[0.0, 1.0, 2.0]]
    assert as_codes(np.arange(3, dtype=">f4"), 3).tolist() == [[0.0, 1.0, 2.0]]
    assert as_codes((torch.tensor(1.0), torch.tensor(2.0)), 2).tolist() == [[1.0, 2.0]]
    with pytest.raises(ValueError, match=r"take \.mean or \.sampled"):
        as_codes(type("Code", (), {"sampled": 1})(), 2)
    with pytest.raises(ValueError, match="rows of 2 numbers; given 1 × 1 × 2"):
        as_codes(np.zeros((1, 1, 2)), 2)
