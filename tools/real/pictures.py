"""Photographs of scikit-image, cut and turned."""

from __future__ import annotations

import numpy as np

# Classes of ImageNet that name what a photograph shows.
SHOWN = {
    "chelsea.png": {281, 282, 283, 285},  # a cat
    "coffee.png": {504, 550, 967, 968},  # a cup of coffee
    "rocket.jpg": {657, 744, 812},  # a rocket at its start
    "motorcycle_left.png": {444, 665, 670, 671},  # a motorcycle in a garage
}
SCENES = ("brick.png", "chelsea.png", "coffee.png", "grass.png", "hubble_deep_field.jpg", "moon.png", "rocket.jpg")
BILINEAR = 2  # Pillow's number of it
PERSON = "astronaut.png"
FACE = (172.0, 72.0, 277.0, 192.0)  # left, top, right, bottom of the face in PERSON


def photograph(name: str):
    """An image in RGB."""
    from PIL import Image
    from skimage import data  # its folder of files is where the photographs lie

    return Image.open(f"{data.__path__[0]}/{name}").convert("RGB")


def cut(rng: np.random.Generator, image, size: int, least: float = 0.6) -> np.ndarray:
    """A square of at least ``least`` of the image's shorter side, perhaps mirrored and brighter: uint8 [size, size, 3]."""
    side = int(min(image.size) * rng.uniform(least, 1))
    left, top = (int(rng.integers(0, length - side + 1)) for length in image.size)
    square = image.crop((left, top, left + side, top + side)).resize((size, size), BILINEAR)
    pixels = np.asarray(square, np.float32)[:, :: -1 if rng.random() < 0.5 else 1]
    return np.clip(pixels * rng.uniform(0.8, 1.2), 0, 255).astype(np.uint8)


def close_face(rng: np.random.Generator, image, size: int) -> np.ndarray:
    """The face of PERSON as a detector frames it, a tenth off at most: uint8 [size, size, 3]."""
    left, top, right, bottom = FACE
    side = (bottom - top) * rng.uniform(0.9, 1.1)
    x, y = ((low + high - side) / 2 + rng.uniform(-0.1, 0.1) * side for low, high in ((left, right), (top, bottom)))
    square = image.crop((int(x), int(y), int(x + side), int(y + side))).resize((size, size), BILINEAR)
    pixels = np.asarray(square, np.float32)[:, :: -1 if rng.random() < 0.5 else 1]
    return np.clip(pixels * rng.uniform(0.7, 1.25), 0, 255).astype(np.uint8)


def portrait(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A square with the face of PERSON in it, uint8 [size, size, 3], and the face's box in parts of the square [4]."""
    image = photograph(PERSON)
    left, top, right, bottom = FACE
    side = int((bottom - top) * rng.uniform(1.5, 3.2))
    x = int(rng.integers(max(0, int(right) - side), min(int(left), image.width - side) + 1))
    y = int(rng.integers(max(0, int(bottom) - side), min(int(top), image.height - side) + 1))
    square = image.crop((x, y, x + side, y + side)).resize((size, size), BILINEAR)
    box = (np.array(FACE) - [x, y, x, y]) / side
    pixels = np.asarray(square, np.float32)
    if rng.random() < 0.5:
        pixels, box = pixels[:, ::-1], np.array([1 - box[2], box[1], 1 - box[0], box[3]])
    return np.clip(pixels * rng.uniform(0.7, 1.25), 0, 255).astype(np.uint8), box
