"""Inputs for a model: read from a file, or random."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ovlpt.graph.constants import precision_of
from ovlpt.openvino_api import Model
from ovlpt.precisions import NUMPY
from ovlpt.trace import InputError


def random_inputs(model: Model, seed: int = 0) -> list[np.ndarray]:
    """One array per input: standard normal, or small non-negative integers. Dynamic dimensions get their
    minimum, at least 1.
    """
    generator = np.random.default_rng(seed)
    arrays = []
    for port in model.inputs:
        if port.get_partial_shape().rank.is_dynamic:
            raise InputError(f'input "{_name(port)}" has no known rank; give an array for it with -i')
        shape = [max(1, size.get_min_length()) for size in port.get_partial_shape()]
        precision = precision_of(port)
        if precision in ("f16", "f32", "f64", "bf16"):
            arrays.append(generator.standard_normal(shape).astype(NUMPY.get(precision, np.float32)))
        else:
            arrays.append(generator.integers(0, 2, shape).astype(NUMPY.get(precision, np.int32)))
    return arrays


def load_inputs(path: str | Path, model: Model) -> list[np.ndarray]:
    """One array per input from an ``.npz`` whose keys are input names (one unnamed array will do for one input).

    Raises `InputError` for an unreadable file, and for arrays that are missing or of another shape.
    """
    if not Path(path).exists():
        raise InputError(f'no file "{path}"; -i takes an .npz with one array per input')
    try:
        with np.load(path) as stored:
            arrays = {key: stored[key] for key in stored.files}
    except (ValueError, OSError, AttributeError) as error:
        raise InputError(f'"{path}" is no .npz of arrays: {error}') from error
    if len(arrays) == 1 and len(model.inputs) == 1:
        found = list(arrays.values())
    else:
        found = []
        for port in model.inputs:
            names = {*port.get_names(), port.get_node().get_friendly_name()}
            match = next((arrays[name] for name in names if name in arrays), None)
            if match is None:
                raise InputError(
                    f'"{path}" has no array for input "{_name(port)}"; it has {", ".join(arrays) or "none"}'
                )
            found.append(match)
    for port, array in zip(model.inputs, found, strict=True):
        shape = port.get_partial_shape()
        fits = shape.rank.is_dynamic or (
            len(shape) == array.ndim
            and all(
                size.is_dynamic or size.get_length() == actual for size, actual in zip(shape, array.shape, strict=True)
            )
        )
        if not fits:
            raise InputError(
                f'input "{_name(port)}" takes the shape {shape}, the array in "{path}" has {list(array.shape)}'
            )
    return [
        array.astype(NUMPY[precision_of(port)], copy=False) if precision_of(port) in NUMPY else array
        for port, array in zip(model.inputs, found, strict=True)
    ]


def _name(port: object) -> str:
    return next(iter(sorted(port.get_names())), port.get_node().get_friendly_name())
