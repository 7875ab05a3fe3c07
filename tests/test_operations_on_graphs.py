"""Every operation × granularity × zero point × batch: transformed or refused with a reason, and never wrong in
numbers.
"""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt import Params
from ovlpt.graph.text import to_text
from tests.conftest import Transformed
from tests.graphs import CASES, fake_quantize, model, parameter

ZERO_POINT = 64 / 191  # of an interval [-64 s, 191 s]: a whole number, so that nothing is rounded


def quantized(case, axis: int | None, zero_point: bool, dynamic: bool):
    shape = [-1, *case.shape[1:]] if dynamic else list(case.shape)
    high = np.float32(2.55)
    if axis is not None:
        spread = [1] * len(case.shape)
        spread[axis] = case.shape[axis]
        high = np.linspace(1, 2.5, case.shape[axis], dtype=np.float32).reshape(spread)
    return model(case.build(fake_quantize(parameter(shape), -high * ZERO_POINT if zero_point else high * 0, high)))


@pytest.mark.parametrize("zero_point", [False, True], ids=["symmetric", "zero_point"])
@pytest.mark.parametrize("axis", [None, 1, 2], ids=["per_tensor", "axis_1", "axis_2"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_static(case, axis, zero_point):
    if axis is not None and axis >= len(case.shape):
        axis = None
    check(quantized(case, axis, zero_point, dynamic=False), case.shape[0])


@pytest.mark.parametrize("axis", [None, 1], ids=["per_tensor", "axis_1"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_dynamic_batch(case, axis):
    check(quantized(case, axis, zero_point=True, dynamic=True), case.shape[0])


def check(graph, batch: int) -> None:
    result = Transformed(graph)
    operations = {
        event.operation
        for event in result.trace
        if not event.transformation.startswith(("FakeQuantize", "MultiplyPartial"))
    }
    assert operations, "the trace has no answer for the operation"
    if to_text(result.before) != to_text(result.after):
        result.assert_numbers(1e-4, batch)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in ("AvgPool padded", "SpaceToBatch padded")], ids=str
)
def test_native_only_repeats_what_the_native_library_does_to_padding(case):
    """Raw zeros are padded though the zero point is not zero; the default mode refuses."""
    graph = quantized(case, None, True, dynamic=False)
    name = case.name.split()[0]
    assert Transformed(graph, Params(native_only=True)).transformed(name)
    assert Transformed(graph).reasons(name) == ["zero_point"]
