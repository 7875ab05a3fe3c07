from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.device import loading
from ovlpt.openvino_api import Core, Model, opset1, opset8
from ovlpt.trace import InputError
from tests.conftest import EXACT
from tests.graphs import f32, model, parameter

_SCALE = 0.05


def summed(zero_point: int, subtracted: int, reader=lambda value: opset1.add(value, f32(1.0))) -> Model:
    """A quantized tensor that QLinearAdd of ONNX Runtime reads, as OpenVINO before 2026.2 makes operations of it."""
    ends = [f32((end - zero_point) * _SCALE) for end in (0, 255)]
    integers = opset1.convert(opset1.fake_quantize(parameter((2, 8)), *ends, f32(0), f32(255), 256), "u8")
    integers.set_friendly_name("sum_quantized")
    difference = opset1.subtract(integers, opset1.constant(np.array(subtracted, np.uint8)))
    return model(reader(opset1.multiply(opset1.convert(difference, "f32"), f32(_SCALE))))


@pytest.fixture
def reads(monkeypatch, tmp_path):
    """Reads an ONNX file that OpenVINO takes for a given model."""

    class Reader:
        def __init__(self, found: Model):
            self.found = found

        def get_property(self, *_):
            return Core().get_property("CPU", "FULL_DEVICE_NAME")

        def read_model(self, _):
            return self.found

    monkeypatch.setattr(loading, "_check_kind", lambda path: None)
    (path := tmp_path / "summed.onnx").write_bytes(b"onnx")
    return lambda found: loading.read_model(path, Reader(found))


def test_zero_points_that_openvino_loses_are_an_error(reads):
    with pytest.raises(InputError, match=r'takes the zero point of "sum_quantized" in ".*summed\.onnx" for 0'):
        reads(summed(117, 0))


@pytest.mark.parametrize("release, is_wrong", [((2025, 1), True), ((2026, 1), False)])
def test_zero_points_that_were_lost_before_are_an_error(monkeypatch, release, is_wrong):
    """What a Core of the user's own has read."""
    monkeypatch.setattr(loading, "RELEASE", release)
    read = summed(117, 0)
    if not is_wrong:
        assert loading.read_model(read, Core()) is read
        return
    with pytest.raises(InputError, match=r'takes the zero point of "sum_quantized" in the model ".*" for 0'):
        loading.read_model(read, Core())


@pytest.mark.parametrize("zero_point", [0, 117])
def test_zero_points_that_are_read_are_none(reads, zero_point):
    assert reads(summed(zero_point, zero_point)).get_ops()


def test_a_softmax_does_not_depend_on_a_zero_point(reads):
    assert reads(summed(117, 0, lambda value: opset8.softmax(value, 1))).get_ops()


@pytest.mark.parametrize(
    ("ends", "levels"), [((-np.inf, 1), 256), ((0, np.inf), 256), ((np.nan, np.nan), 256), ((-3e38, 3e38), 512)]
)
def test_an_interval_that_is_no_number_is_told(core, ends, levels):
    """As of a mask of -inf, where ONNX Runtime averages the ends: the plugin compiles it by itself."""
    given = model(opset1.fake_quantize(parameter((2, 8)), *map(f32, ends), *map(f32, ends), levels))
    with pytest.warns(UserWarning, match=r'the FakeQuantize ".*" in the model ".*" has the interval \[.*\], so that'):
        assert ovlpt.compile_model(given, core=core, properties=EXACT).outputs
