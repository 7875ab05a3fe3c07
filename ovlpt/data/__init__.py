"""The bundled files: the schema of what commands write, and an example.

The example is a quantized CNN on handwritten digits, its float original, and images it never saw. It was trained on
scikit-learn's ``load_digits`` (the UCI ML hand-written digits, 8x8 pixels, 1797 images) and quantized by NNCF;
``tools/make_digits.py`` makes all of it again. numpy is enough to import this module.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent


def digits() -> Path:
    """IR of the quantized network: ``image`` f32 [1, 1, 32, 32] in [0, 1] → ``logits`` f32 [1, 10].

    Eight-bit FakeQuantize operations on the activations (u8, some with a zero point) and i8 weights. Readable
    by OpenVINO 2024.6 and later.
    """
    return FOLDER / "digits.xml"


def digits_float() -> Path:
    """IR of the same network before quantization, weights compressed to f16; same input and output."""
    return FOLDER / "digits_float.xml"


def heldout() -> tuple[np.ndarray, np.ndarray]:
    """Images float32 [500, 1, 32, 32] in [0, 1] that were not trained on, and their labels int64 [500]."""
    with np.load(FOLDER / "digits_heldout.npz") as stored:
        return enlarge(stored["pixels"]), stored["labels"].astype(np.int64)


def schema() -> Path:
    """JSON Schema (2020-12) of what each command writes with ``--json``."""
    return FOLDER / "output.schema.json"


def enlarge(pixels: np.ndarray) -> np.ndarray:
    """The network's input float32 [N, 1, 32, 32] from pixels [N, 8, 8] of 0 to 16: each becomes 4x4."""
    return pixels.repeat(4, axis=1).repeat(4, axis=2)[:, None].astype(np.float32) / 16
