import numpy as np
import pytest

from ovlpt import Params
from ovlpt.openvino_api import opset1
from tests.conftest import Transformed
from tests.graphs import f32, fake_quantize, model, parameter


@pytest.mark.parametrize(
    ("shape", "sizes", "fused"),
    [
        ((1, 5, 16), (16,), False),
        ((1, 5, 16), (5, 1), True),
        ((2, 6, 4, 4), (4, 1), False),
        ((2, 6, 4, 4), (6, 1, 1), True),
        ((2, 6, 4, 4), (1, 1, 4, 1), False),
        ((6, 4), (4,), True),
    ],
)
@pytest.mark.parametrize("operation", ["Multiply", "Add"])
def test_a_constant_of_fewer_axes_than_its_data_in_native_only(shape, sizes, fused, operation):
    """Its axes are the last ones of the data."""
    constant = f32(np.linspace(0.5, 1.5, int(np.prod(sizes))).reshape(sizes))
    moved = getattr(opset1, operation.lower())(opset1.sigmoid(parameter(shape)), constant)
    result = Transformed(model(fake_quantize(moved, -1, 1, 255)), Params(native_only=True))
    assert result.transformed("FakeQuantize") is fused
    result.assert_numbers()
