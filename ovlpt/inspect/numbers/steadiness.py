"""How far a network is from itself where each quantization reads slightly other data: what roundings may do to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np

from ovlpt.graph.constants import is_constant_path, is_real, precision_of
from ovlpt.inspect.numbers.cases import Case
from ovlpt.inspect.numbers.runs import Compile, at_sizes, distances_of, sizes_of, started
from ovlpt.openvino_api import Model, opset1

# One tensor less, the next more:
COARSE = (1 - 2**-8, 1 + 2**-8)  # by half a step of bf16
FINE = (1 - 2**-22, 1 + 2**-22)  # by two of f32: values at a tie, which no two ways of computing a sum leave there


def steadiness(source: Model, simulate: Compile, case: Case, factors: Sequence[float] = COARSE) -> Sequence[float]:
    """SQNR in dB of the simulation, at each output, where all data that are quantized differ by ``factors``.

    `COARSE`: so many values fall to another level then as of no network that rounds at ties. Minus infinity where it does
    not run.
    """
    sizes = sizes_of(source, case)
    model = at_sizes(source, dict(enumerate(sizes))) if sizes else source
    distances, _ = distances_of(started(simulate, moved(model, factors))[0], case, "")
    return [-np.inf] * len(source.outputs) if distances is None else [distance.sqnr for distance in distances]


def moved(model: Model, factors: Sequence[float] = COARSE) -> Model:
    """A copy whose data are multiplied by one of ``factors`` after the other before they are quantized."""
    copy, one_by_one = model.clone(), cycle(factors)
    for node in copy.get_ordered_ops():
        data = node.input_value(0) if node.get_type_name() == "FakeQuantize" else None
        if data is None or is_constant_path(data.get_node()) or not is_real(precision_of(data)):
            continue
        factor = opset1.constant(np.float32(next(one_by_one)))
        factor = factor if precision_of(data) == "f32" else opset1.convert(factor, precision_of(data))
        node.input(0).replace_source_output(opset1.multiply(data, factor).output(0))
    return copy
