"""Speech from a synthesizer, noise, notes, and their spectra."""

from __future__ import annotations

import subprocess
import tempfile
import wave
from pathlib import Path

import numpy as np

from tools.real.wheels import Missing

RATE = 16000
VOICES = ("awb", "kal16", "rms", "slt")
NOTES_RATE, NOTES_SAMPLES, NOTES_FRAMES = 22050, 43844, 172  # a window of the pitch network
LOWEST, PITCHES = 21, 88  # a piano's keys in MIDI's numbers


def speech(voice: str, text: str) -> np.ndarray:
    """``text`` spoken by one of VOICES, float32 at RATE with a largest value of 0.5. Raises `Missing` without flite."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speech.wav"
        try:
            subprocess.run(["flite", "-voice", voice, "-t", text, "-o", str(path)], check=True, capture_output=True)
        except FileNotFoundError:
            raise Missing("the speech synthesizer flite is not installed: apt-get install flite") from None
        with wave.open(str(path)) as file:
            assert file.getframerate() == RATE
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32)
    return samples * (0.5 / np.abs(samples).max())


def noise(rng: np.random.Generator, count: int, level: float) -> np.ndarray:
    """``count`` samples whose spectrum falls as a room's does, with the deviation ``level``."""
    spectrum = np.fft.rfft(rng.standard_normal(count))
    spectrum /= np.sqrt(np.arange(len(spectrum)) + 20)
    samples = np.fft.irfft(spectrum, count)
    return (samples * (level / samples.std())).astype(np.float32)


def with_pauses(rng: np.random.Generator, utterances: list[np.ndarray], level: float) -> tuple[np.ndarray, np.ndarray]:
    """The utterances with pauses around them in noise, and where someone speaks: float32 and bool, one a sample."""
    pieces, truth = [], []
    for utterance in utterances:
        pause = int(rng.uniform(0.4, 1.2) * RATE)
        envelope = np.convolve(np.abs(utterance), np.ones(1600) / 1600, "same")
        pieces += [np.zeros(pause, np.float32), utterance]
        truth += [np.zeros(pause, bool), envelope > 0.02]
    sound = np.concatenate(pieces)
    return sound + noise(rng, len(sound), level), np.concatenate(truth)


def windows(sound: np.ndarray, size: int = 512, context: int = 64) -> np.ndarray:
    """Every ``size`` samples with the ``context`` before them, float32 [windows, context + size]."""
    count = len(sound) // size
    padded = np.concatenate([np.zeros(context, np.float32), sound])
    return np.stack([padded[size * index : size * (index + 1) + context] for index in range(count)])


def spectrum(sound: np.ndarray, size: int, step: int, window: np.ndarray) -> np.ndarray:
    """Short-time Fourier transform, complex [frames, size // 2 + 1]."""
    frames = np.lib.stride_tricks.sliding_window_view(sound, size)[::step]
    return np.fft.rfft(frames * window)


def mel(sound: np.ndarray, channels: int = 40, size: int = 400, step: int = 160) -> np.ndarray:
    """Power in mel bands (linear below 1 kHz, logarithmic above, equal areas), float32 [frames, channels]."""
    power = np.abs(spectrum(np.pad(sound, size // 2), size, step, np.hanning(size + 1)[:-1])) ** 2
    limit = 15 + np.log(RATE / 2 / 1000) / (np.log(6.4) / 27)
    steps = np.linspace(0, limit, channels + 2)
    edges = np.where(steps < 15, steps * 200 / 3, 1000 * np.exp((steps - 15) * np.log(6.4) / 27))
    bins = np.linspace(0, RATE / 2, power.shape[1])
    rising = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    bands = np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    return (power @ bands.T).astype(np.float32)


def tones(rng: np.random.Generator, count: int, size: int = 1024) -> tuple[np.ndarray, np.ndarray]:
    """Windows of a tone each, of mean 0 and deviation 1, float32 [count, size], and the tones in cents above 10 Hz [count]."""
    time, cents = np.arange(size) / RATE, 1200 * np.log2(rng.uniform(60, 1200, count) / 10)
    partials = np.arange(1, 9)[:, None, None]
    phases, levels = rng.uniform(0, 2 * np.pi, (8, count, 1)), rng.uniform(0.3, 1, (8, count, 1)) / partials
    frequency = 10 * 2 ** (cents / 1200)
    sound = (levels * np.sin(2 * np.pi * partials * frequency[:, None] * time + phases)).sum(0)
    sound += np.stack([noise(rng, size, rng.uniform(0.02, 0.3)) for _ in range(count)])
    sound -= sound.mean(1, keepdims=True)
    return (sound / sound.std(1, keepdims=True)).astype(np.float32), cents


def melody(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A window of two voices of plucked notes, float32 [NOTES_SAMPLES], and what sounds, bool [NOTES_FRAMES, PITCHES]."""
    sound, truth = np.zeros(NOTES_SAMPLES, np.float32), np.zeros((NOTES_FRAMES, PITCHES), bool)
    for low in (48, 62):
        start = int(rng.uniform(0, 0.3) * NOTES_RATE)
        while start < NOTES_SAMPLES - 6000:
            count = min(NOTES_SAMPLES - start, int(rng.uniform(0.25, 0.7) * NOTES_RATE))
            pitch, time = low + int(rng.integers(14)), np.arange(count) / NOTES_RATE
            frequency = 440 * 2 ** ((pitch - 69) / 12)
            partials = sum(np.sin(2 * np.pi * frequency * n * time) * np.exp(-2 * n * time) / n for n in range(1, 8))
            fade = np.minimum(1, np.minimum(np.arange(count), count - np.arange(count)) / 200)
            sound[start : start + count] += 0.2 * partials * fade
            frames = slice(start * NOTES_FRAMES // NOTES_SAMPLES, (start + count) * NOTES_FRAMES // NOTES_SAMPLES)
            truth[frames, pitch - LOWEST] = True
            start += count + int(rng.uniform(0, 0.15) * NOTES_RATE)
    return sound + noise(rng, NOTES_SAMPLES, 0.002), truth
