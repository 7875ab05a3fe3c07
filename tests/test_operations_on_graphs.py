"""Every operation × granularity × zero point × batch: transformed or refused with a reason, and never wrong in numbers.

The variants of an operation are branches of one model.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from ovlpt import Params
from ovlpt.openvino_api import Model, opset1
from ovlpt.operations import OPERATIONS
from ovlpt.trace import Outcome
from tests.conftest import Transformed
from tests.graphs import CASES, Case, f32, fake_quantize, model, opset6, parameter

ZERO_POINT = 64 / 191  # of an interval [-64 s, 191 s]: a whole number, so that nothing is rounded


class Variant(NamedTuple):
    """The axis along which the scale differs (None: one scale), and whether there is a zero point."""

    axis: int | None
    zero_point: bool


def variants(case: Case, dynamic: bool = False) -> list[Variant]:
    """All of them; along a batch of any size no constant can differ."""
    axes = [axis for axis, size in enumerate(case.shape) if size > 1 and not (dynamic and axis == 0)]
    return [Variant(*each) for each in product([None, *axes], [False, True])]


def quantized(case: Case, chosen: Iterable[Variant], dynamic: bool = False) -> Model:
    """The operation on one input, quantized in the chosen ways; its nodes are called y0, y1 …"""
    data = parameter([-1, *case.shape[1:]] if dynamic else case.shape)
    results = []
    for index, (axis, zero_point) in enumerate(chosen):
        high = np.float32(2.55)
        if axis is not None:
            spread = [size if other == axis else 1 for other, size in enumerate(case.shape)]
            high = np.linspace(1, 2.5, case.shape[axis], dtype=np.float32).reshape(spread)
        low = -high * ZERO_POINT if zero_point else high * 0
        results.append(case.build(fake_quantize(data, low, high, name=f"fq{index}")))
    return model(*results, opset1.relu(data))  # several results, so that names are y0 … also for one variant


def operation(name: str) -> str:
    """The row that a case belongs to."""
    return next(row for row in sorted(OPERATIONS, key=len, reverse=True) if name.startswith(row))


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic_batch"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_transformed_or_refused_and_never_wrong(case, dynamic):
    chosen = variants(case, dynamic)
    result = Transformed(quantized(case, chosen, dynamic))
    for index, variant in enumerate(chosen):
        events = [event for event in result.trace.of(f"y{index}") if event.operation == operation(case.name)]
        assert events, f"the trace has no answer for {variant}"
        assert events[-1].outcome is Outcome.TRANSFORMED or events[-1].reason, variant
    result.assert_numbers(1e-4, case.shape[0])


def test_every_row_with_a_rule_has_a_case():
    rows = {name for name, row in OPERATIONS.items() if row.kind != "absent"}
    assert {operation(case.name) for case in CASES} | {"Assign"} == rows


@pytest.mark.parametrize("zero_point", [False, True], ids=["symmetric", "zero_point"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, 3])
def test_assign(axis, zero_point):
    """Over three inferences, since the variable is read a step later."""
    shape = (2, 3, 4, 5)
    high = np.float32(2.55)
    if axis is not None:
        spread = [size if other == axis else 1 for other, size in enumerate(shape)]
        high = np.linspace(1, 2.5, shape[axis], dtype=np.float32).reshape(spread)
    data = parameter(shape)
    kept = opset6.read_value(f32(np.zeros(shape)), "kept", np.float32, list(shape))
    low = -high * ZERO_POINT if zero_point else high * 0
    assign = opset6.assign(fake_quantize(data, low, high), "kept")
    result = Transformed(Model([opset1.result(opset1.multiply(kept, f32(2)))], [assign], [data], "delay"))
    assert result.transformed("AssignAndReadValue") or result.reasons("AssignAndReadValue")
    result.assert_numbers(1e-4, steps=3)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in ("AvgPool padded", "SpaceToBatch padded")], ids=str
)
def test_native_only_repeats_what_the_native_library_does_to_padding(case):
    """Raw zeros are padded though the zero point is not zero; the default mode refuses."""
    graph = quantized(case, [Variant(None, True)])
    name = operation(case.name)
    assert Transformed(graph, Params(native_only=True)).transformed(name)
    assert Transformed(graph).reasons(name) == ["zero_point"]
