"""What networks are compared on: samples, by their sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from ovlpt.inspect.inputs import load_samples, open_sizes, sequence
from ovlpt.openvino_api import Model
from ovlpt.trace import InputError

STEPS = 3  # the length of a generated sample of a model with a state
SAMPLES = 4  # generated for each size
REMEDY = "give inputs that fit with -i, or leave numbers out with --no-numbers"
Sample = list[list[np.ndarray]]  # steps, of one array per input


@dataclass
class Case:
    """Samples of one size, and what the simulation makes of them: outputs by sample and step.

    ``draw``: generates the sample of a number; None where samples are given.
    """

    inputs: str
    samples: list[Sample]
    expected: list[list[list[np.ndarray]]] = field(default_factory=list)
    draw: Callable[[int], Sample] | None = None
    floors: Sequence[float] = ()  # the `resolution` of each output


def cases_of(model: Model, inputs: str | Path | Sequence[np.ndarray] | None) -> list[Case]:
    """Samples to compare on. ``inputs``: a file or arrays as for `load_samples`; generated of each input's type and
    range without. The samples of a model with a state are one sequence.

    Raises `InputError` for inputs that do not fit, and where none can be generated.
    """
    has_state = bool(model.get_sinks())
    if inputs is not None:
        samples, _ = load_samples(inputs, model)
        if not samples:
            raise InputError("the data holds no sample; give at least one")
        cases: dict[str, Case] = {}
        for sample in samples:
            case = cases.setdefault(label := _shapes(sample), Case(label, []))
            if has_state and case.samples:
                case.samples[0].append(sample)
            else:
                case.samples.append([sample])
        return list(cases.values())
    found = []
    steps = STEPS if has_state else 1
    for batch, length in open_sizes(model):
        draw = partial(_drawn, model, batch, length, steps)
        samples = [draw(number) for number in range(SAMPLES)]
        found.append(Case(_shapes(samples[0][0]), samples, draw=draw))
    return found


def _drawn(model: Model, batch: int, length: int, steps: int, number: int) -> Sample:
    return sequence(model, batch, length, range(number * steps, (number + 1) * steps))


def _shapes(arrays: Sequence[np.ndarray]) -> str:
    return " ".join(str(list(array.shape)).replace(" ", "") for array in arrays)
