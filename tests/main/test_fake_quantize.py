import numpy as np
import pytest

import ovlpt
from ovlpt import Params
from ovlpt.openvino_api import Type, opset1
from tests.conftest import Transformed, assert_close
from tests.graphs import f32, fake_quantize, model, parameter, weights


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
@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("operation", ["Multiply", "Add"])
def test_a_constant_of_fewer_axes_than_its_data(shape, sizes, fused, operation, native_only):
    """Its axes are the last ones of the data: there is no FakeQuantize kernel along those."""
    constant = f32(np.linspace(0.5, 1.5, int(np.prod(sizes))).reshape(sizes))
    moved = getattr(opset1, operation.lower())(opset1.sigmoid(parameter(shape)), constant)
    result = Transformed(model(fake_quantize(moved, -1, 1, 255)), Params(native_only=native_only))
    assert result.transformed("FakeQuantize") is fused
    result.assert_numbers()


@pytest.mark.parametrize("native_only", [False, True])
def test_the_scale_of_a_layer_that_others_need_too_is_no_part_of_an_interval(native_only):
    """The layer then computes its scale itself, and both read real numbers; the native library divides the interval."""
    data = fake_quantize(parameter((1, 3, 8, 8)), 0, 2.55)
    factors = np.linspace(0.01, 0.02, 4, dtype=np.float32).reshape(4, 1, 1, 1)
    layer = opset1.convolution(data, weights((4, 3, 3, 3), factors), [1, 1], [0, 0], [0, 0], [1, 1])
    quantized = fake_quantize(layer, -1, 1, name="of the layer")
    result = Transformed(model(opset1.add(opset1.sin(layer), quantized)), Params(native_only=native_only))
    (node,) = (each for each in result.after.get_ops() if each.get_friendly_name() == "of the layer")
    assert node.input_value(0).get_node().get_type_name() == ("Convolution" if native_only else "Multiply")
    result.assert_numbers()


@pytest.mark.parametrize("native_only", [False, True])
def test_a_stored_zero_point_of_integers_that_are_quantized_again(core, infer, native_only):
    """The FakeQuantize reads the integers; the zero point was left before it, and in bf16 two layers more."""
    x = opset1.parameter([1, 4, 8, 8], Type.u8)
    zero_point = opset1.convert(opset1.constant(np.array(3, np.uint8)), "f32")
    data = opset1.multiply(opset1.subtract(opset1.convert(x, "f32"), zero_point), f32(0.02))
    layer = opset1.convolution(
        fake_quantize(data, -0.1, 5, name="again"), weights((4, 4, 1, 1), f32(0.01)), [1, 1], [0, 0], [0, 0], [1, 1]
    )
    net = model(layer)
    done = ovlpt.transform(net, core=core, native_only=native_only, lowered=False)
    (node,) = (each for each in done.get_ops() if each.get_friendly_name() == "again")
    assert (node.input_value(0).get_node().get_type_name() == "Parameter") is not native_only
    values = [np.random.default_rng(0).integers(0, 120, x.shape).astype(np.uint8)]  # no sum saturates
    compiled = ovlpt.compile_model(net, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}, core=core, native_only=native_only)
    assert_close([compiled(values)[0]], infer(net, values), level=0.03, share=0.02)


@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("levels", [256, 65536])
@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "uint16", "uint32", "int64"])
def test_a_convert_is_read_past_where_kernels_take_its_data(core, kind, levels, native_only):
    """The plugin converts other data twice, to i32 and to floats, in layers of their own; its own LPT throws for some."""
    data = opset1.convert(opset1.parameter([2, 8, 4, 4], np.dtype(kind), "x"), "f32")
    net = model(opset1.relu(fake_quantize(data, 0, levels - 1, levels)))
    result = Transformed(net, Params(native_only=native_only))
    assert result.transformed("FakeQuantize") is (native_only or kind in ("uint8", "int8"))
    if not native_only:
        result.assert_numbers()
        compiled = ovlpt.compile_model(net, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}, core=core)
        assert len(ovlpt.execution_types(compiled).executed) <= 2
