"""What feeds the networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

VOCABULARY = 2000
STATES = {"hidden": 0.125, "cell": 0.27}  # deviations of the states that an untrained LSTM ends such signals with


def draw(rng: np.random.Generator, shapes: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """An array for every input, by its name and shape.

    ``input_ids`` are tokens, of which ``attention_mask`` hides up to a half at the end; ``hidden`` and ``cell`` are
    states that an LSTM is left in. All others are signals, images [1, channels, height, width] or a single channel.
    """
    return {name: _array(rng, name, tuple(shape)) for name, shape in shapes.items()}


def _array(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if name == "input_ids":
        return rng.integers(VOCABULARY, size=shape)
    if name == "attention_mask":
        return (np.arange(shape[-1])[None] < rng.integers(shape[-1] // 2, shape[-1] + 1)).astype(np.int64)
    if name in STATES:
        return STATES[name] * rng.standard_normal(shape, np.float32)
    if len(shape) == 4:
        return smooth(rng, shape[1:])
    return smooth(rng, shape, waves=40 if name == "sound" else 12)[0]


def smooth(rng: np.random.Generator, shape: tuple[int, ...], waves: int = 12) -> np.ndarray:
    """float32 noise [1, *shape] with the falling spectrum of photographs, about zero mean and unit deviation.

    Every leading index (a channel) shares the waves with its own weights; the other axes are spatial.
    """
    axes = np.meshgrid(*(np.linspace(0, 1, size) for size in shape[1:]), indexing="ij")
    frequency = rng.exponential(4, waves) + 0.5
    direction = rng.standard_normal((waves, len(axes)))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    phase = sum(np.multiply.outer(frequency * direction[:, i], axis) for i, axis in enumerate(axes))
    offset = rng.uniform(0, 2 * np.pi, (waves, *(1 for _ in axes)))
    field = np.cos(2 * np.pi * phase + offset)
    weights = (1 + 0.5 * rng.standard_normal((shape[0], waves))) / frequency
    signal = np.tensordot(weights, field, 1)
    signal += 0.05 * rng.standard_normal(signal.shape) + 0.3 * rng.standard_normal()
    return (signal / signal.std())[None].astype(np.float32)
