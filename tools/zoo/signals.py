"""What feeds the networks."""

from __future__ import annotations

import numpy as np


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
