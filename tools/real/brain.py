"""Electroencephalograms: noise as a brain at rest gives, and what is looked for in it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

SPINDLE_RATE, SPINDLE_SAMPLES = 250, 7500  # of the network that looks for sleep spindles
SEIZURE_RATE = 200


def background(rng: np.random.Generator, count: int, flat: int, slope: float) -> np.ndarray:
    """``count`` samples of deviation 1, whose spectrum falls from its bin ``flat`` on."""
    spectrum = np.fft.rfft(rng.standard_normal(count))
    samples = np.fft.irfft(spectrum / np.maximum(flat, np.arange(len(spectrum))) ** slope, count)
    return samples / samples.std()


def normalized(values: np.ndarray) -> np.ndarray:
    """Mean 0 and deviation 1 along the last axis."""
    return (values - values.mean(-1, keepdims=True)) / values.std(-1, keepdims=True)


def spindles(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Half a minute of sleep with six spindles, about a second of 11.5 to 14.5 Hz each: float64, and where they are, bool."""
    signal, truth = background(rng, SPINDLE_SAMPLES, 10, 0.8), np.zeros(SPINDLE_SAMPLES, bool)
    for index in range(6):
        start = index * SPINDLE_SAMPLES // 6 + int(rng.integers(50, 500))
        count = int(rng.uniform(0.7, 1.6) * SPINDLE_RATE)
        wave = np.sin(2 * np.pi * rng.uniform(11.5, 14.5) * np.arange(count) / SPINDLE_RATE)
        signal[start : start + count] += 1.25 * wave * np.hanning(count)
        edge = int(0.15 * count)  # where the noise hides it
        truth[start + edge : start + count - edge] = True
    return normalized(signal), truth


def seizure(rng: np.random.Generator, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Power of 100 frequencies at ``steps`` half seconds, of which a third is a rhythm that grows and slows from 8 to 3 Hz:
    float32 [100, steps], each frequency normalized, and where the rhythm is, bool.
    """
    hop, start, length = SEIZURE_RATE // 2, steps // 3 + int(rng.integers(steps // 6)), steps // 3
    signal = background(rng, hop * (steps + 1), 20, 1.0)
    phase = 2 * np.pi * np.cumsum(np.linspace(8, 3, hop * length)) / SEIZURE_RATE
    waves = np.sin(phase) + 0.5 * np.sin(2 * phase + 1) + 0.3 * np.sin(3 * phase + 2)
    growth = np.minimum(1, np.linspace(0, 6, len(waves)))
    signal[hop * start : hop * (start + length)] += rng.uniform(2, 5) * waves * growth
    frames = np.lib.stride_tricks.sliding_window_view(signal, 2 * hop)[::hop][:steps]
    power = np.abs(np.fft.rfft(frames * np.hanning(2 * hop + 1)[:-1]))[:, :100].T ** 2
    truth = np.zeros(steps, bool)
    truth[start : start + length] = True
    return normalized(power).astype(np.float32), truth


def scalograms(signals: np.ndarray, scalogram: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """What the spindles' network reads beside the signals [batch, samples], normalized: float32 [batch, scales, samples]."""
    return np.stack([normalized(scalogram(each)) for each in signals]).astype(np.float32)
