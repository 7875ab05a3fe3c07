from __future__ import annotations

import numpy as np
import pytest

from ovlpt.openvino_api import opset1
from tests.conftest import Transformed
from tests.graphs import fake_quantize, model, parameter, weights

_SHAPE = (2, 4, 6, 6)


def pooled(first, second):
    """Quantized, pooled, and quantized again."""
    before = fake_quantize(parameter(_SHAPE), *first, name="before")
    after = fake_quantize(opset1.max_pool(before, [1, 1], [1, 1], [1, 1], [3, 3]), *second)
    return model(opset1.convolution(after, weights([3, 4, 1, 1], 0.02), [1, 1], [0, 0], [0, 0], [1, 1]))


_NARROW, _WIDE = (np.float32(0), np.float32(2.54), 255), (np.float32(0), np.float32(2.55), 256)


@pytest.mark.parametrize(
    ("first", "second", "left"), [(_WIDE, _WIDE, 1), (_NARROW, _NARROW, 1), (_NARROW, _WIDE, 1), (_WIDE, _NARROW, 2)]
)
def test_a_second_one_goes_where_its_range_holds_the_data(first, second, left):
    """255 of 256 levels cut the largest value off."""
    result = Transformed(pooled(first, second))
    result.assert_numbers()
    assert sum(node.get_type_name() == "FakeQuantize" for node in result.after.get_ops()) == left
