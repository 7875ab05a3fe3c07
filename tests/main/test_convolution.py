import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import Params
from ovlpt.device.compile import LPT_OFF
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT, assert_close
from tests.graphs import f32, fake_quantize, i64, model, parameter, quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Convolution", "channel", 3), "Convolution", "per_channel_activations")


def test_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Convolution", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y/ZeroPoint: f32[2,4,4,4] = Subtract(x, [3,3,3,3]:u8)
        y_original: f32[2,3,4,4] = Convolution(y/ZeroPoint, i8[3,4,1,1])
        y: f32[2,3,4,4] = Multiply(y_original, [0.005,0.01,0.015])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Convolution", "space", 3), "Convolution", "not_per_channel")


def test_zero_point_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Convolution zero point", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y/ZeroPoint: f32[2,4,4,4] = Subtract(x, [3,3,3,3]:u8)
        y/WeightsZeroPoint: f32[3,4,1,1] = Subtract(i8[3,4,1,1], [3,3,3]:i8)
        y_original: f32[2,3,4,4] = Convolution(y/ZeroPoint, y/WeightsZeroPoint)
        y: f32[2,3,4,4] = Multiply(y_original, 0.005)
        """,
        params=Params(native_only=True),  # these integers less 3 fit i8, and are stored so by default
    )


WINDOW = [1, 1], [1, 1], [1, 1], [1, 1]
BY_OUTPUT = np.linspace(0.7, 1.27, 8).reshape(8, 1, 1, 1)
COMPUTED_WEIGHTS = {
    "per tensor": ((8, 8, 3, 3), lambda w: fake_quantize(w, -1.28, 1.27), opset1.convolution),
    "255 levels": ((8, 8, 3, 3), lambda w: fake_quantize(w, -1.27, 1.27, 255), opset1.convolution),
    "per output": ((8, 8, 3, 3), lambda w: fake_quantize(w, -BY_OUTPUT, BY_OUTPUT, 255), opset1.convolution),
    "depthwise": ((8, 1, 1, 3, 3), lambda w: fake_quantize(w, -1.28, 1.27), opset1.group_convolution),
    "groups": ((2, 4, 4, 3, 3), lambda w: fake_quantize(w, -1.28, 1.27), opset1.group_convolution),
    "transposed": (
        (8, 3, 3, 8),
        lambda w: opset1.transpose(fake_quantize(w, -1.28, 1.27), i64(0, 3, 1, 2)),
        opset1.convolution,
    ),
    "reshaped": (
        (1, 576),
        lambda w: opset1.reshape(fake_quantize(w, -1.28, 1.27), i64(8, 8, 3, 3), False),
        opset1.convolution,
    ),
}


def with_computed_weights(case, low=0.0, size=8):
    shape, build, create = COMPUTED_WEIGHTS[case]
    data = fake_quantize(parameter((1, 8, size, size)), low, low + 2.55)
    layer = create(data, build(parameter(shape, "w")), *WINDOW)
    return model(opset1.relu(opset1.add(layer, f32(np.linspace(-1, 1, 8).reshape(1, 8, 1, 1)))))


@pytest.mark.parametrize("size", [8, -1])
@pytest.mark.parametrize("case", COMPUTED_WEIGHTS)
def test_weights_that_are_quantized_activations(core, infer, case, size, tmp_path):
    """Where the plugin with its own LPT runs it in int8, it does so here; a Transpose or a Reshape in between too."""
    graph = with_computed_weights(case, size=size)
    transformed = ovlpt.transform(graph, core=core)
    openvino.save_model(transformed, tmp_path / "m.xml", compress_to_fp16=False)
    compiled = [
        core.compile_model(graph, "CPU", EXACT),
        ovlpt.compile_model(graph, core=core, properties=EXACT),
        core.compile_model(tmp_path / "m.xml", "CPU", {**EXACT, **LPT_OFF["CPU"]}),
    ]
    layers = [ovlpt.execution_types(each).executed for each in compiled]
    stock, *others = ([each.is_int8 for each in found if each.layer_type == "Convolution"] for found in layers)
    for each in others:
        assert each >= stock
        assert len(each) == 1
    assert len(layers[1]) <= len(layers[0])
    generator = np.random.default_rng(0)
    shapes = {"x": (1, 8, 8, 8), "w": COMPUTED_WEIGHTS[case][0]}
    ends = {"x": (-0.5, 3.0), "w": (-0.3, 0.3)}  # at most 55 steps: no CPU saturates a sum of two products
    names = [each.get_friendly_name() for each in graph.get_parameters()]
    inputs = [generator.uniform(*ends[name], shapes[name]).astype(np.float32) for name in names]
    expected = infer(graph, inputs)
    for each in compiled[1:]:
        assert_close(list(each(inputs).values()), expected)


@pytest.mark.parametrize(
    "data, kernel",
    [
        (-1.28, lambda w: fake_quantize(w, -1.27, 1.27, 255)),
        (0.0, lambda w: fake_quantize(w, 0.0, 1.27)),
        (0.0, lambda w: fake_quantize(w, -1.0, 1.27)),
    ],
    ids=["zero point of the data", "u8 weights", "zero point of the weights"],
)
def test_computed_weights_and_zero_points_stay(assert_rejected, data, kernel):
    """No kernel in low precision takes both."""
    x, w = fake_quantize(parameter((1, 8, 8, 8)), data, data + 2.55), parameter((8, 8, 3, 3), "w")
    graph = model(opset1.convolution(x, kernel(w), *WINDOW))
    restrictions = ovlpt.plugin_config.cpu.config().precision_restrictions
    assert_rejected(graph, "Convolution", "dynamic_weights", precision_restrictions=restrictions)
