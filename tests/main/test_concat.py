import numpy as np
import pytest

import ovlpt
from ovlpt import Params, plugin_config
from ovlpt.openvino_api import opset1
from tests.conftest import TRUTH, Transformed
from tests.graphs import dequantization, f32, fake_quantize, model, parameter, quantized, weights

_CPU = plugin_config.cpu.config()
_RESTRICTIONS = {
    "precision_restrictions": _CPU.precision_restrictions,
    "quantization_restrictions": _CPU.quantization_restrictions,
}


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Concat", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,8,4,4] = Concat(x, x) {axis=1}
        y/DequantizationSubtract: f32[2,8,4,4] = Subtract(y_original, 3)
        y: f32[2,8,4,4] = Multiply(y/DequantizationSubtract, f32[1,8,1,1])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Concat", "space", 3), "Concat", "off_concat_axis")


def test_space_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Concat space", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,8,4] = Concat(x, x) {axis=2}
        y/DequantizationSubtract: f32[2,4,8,4] = Subtract(y_original, 3)
        y: f32[2,4,8,4] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )


def before_convolution(*intervals):
    """Tensors over (low, high, levels) each, joined before a layer that wants one scale."""
    shape = (2, 4, 4, 4)
    branches = [fake_quantize(parameter(shape, f"x{i}"), *each, name=f"fq{i}") for i, each in enumerate(intervals)]
    kernel = weights([3, 4 * len(branches), 1, 1], 0.02)
    return model(opset1.convolution(opset1.concat(branches, 1), kernel, [1, 1], [0, 0], [0, 0], [1, 1]))


ON_ONE_GRID = {
    "a zero point each": [(0.0, 2.55, 256), (-1.27, 1.27, 255)],
    "one zero point": [(-1.28, 1.27, 256), (-1.27, 1.27, 255)],
    "none": [(0.0, 2.55, 256), (0.0, 2.54, 255)],
    "each tenth value": [(0.0, 2.55, 256), (-0.5, 1.0, 16)],
    "three": [(0.0, 2.55, 256), (-1.27, 1.27, 255), (-0.7, 0.7, 15)],
    "zero between two values": [(-1.0, 1.4, 256), (-1.0, 1.4 - 2.4 / 255, 255)],
}


@pytest.mark.parametrize("intervals", ON_ONE_GRID.values(), ids=ON_ONE_GRID)
def test_different_levels_on_one_grid(intervals):
    """Each keeps its values; the native library has no scale for them."""
    graph = before_convolution(*intervals)
    result = Transformed(graph, **_RESTRICTIONS)
    assert result.transformed("Convolution")
    result.assert_numbers(1e-5)
    native = Transformed(graph, Params(native_only=True), **_RESTRICTIONS)
    assert not native.transformed("Convolution")
    assert native.reasons("FakeQuantizeDecomposition")[0] == "alignment"


def test_different_levels_share_the_interval_that_holds_them_all():
    """As tensors of equal levels do, and as far off: half a step of the wider interval."""
    result = Transformed(before_convolution((0.0, 2.55, 256), (-1.0, 1.0, 255)), **_RESTRICTIONS)
    assert result.transformed("Convolution")
    scales = [node for node in result.after.get_ops() if node.get_type_name() == "FakeQuantize"]
    assert all(node.get_output_element_type(0).get_type_name() == "u8" for node in scales)
    result.assert_numbers(3.55 / 255)


def quantize_dequantize(data, low: str, levels: int, zero_point: float, name: str, step: float = 0.01):
    """As the ONNX front end gives it."""
    first = 0 if low == "u8" else -(levels // 2)
    ends = np.float32([first, first + levels - 1])
    quantize = opset1.fake_quantize(data, *map(f32, (*(ends - zero_point) * np.float32(step), *ends)), levels)
    quantize.set_friendly_name(name)
    return dequantization(opset1.convert(quantize, low), step, zero_point or None, f"{name}_dq")


@pytest.mark.parametrize(
    ("one", "other", "step", "off"),
    [
        (("u8", 256, 0), ("i8", 255, 0), 0.01, 0),
        (("u8", 256, 100), ("i8", 255, 5), 0.01, 0),
        (("i8", 256, 0), ("i8", 255, 0), 0.01, 0),
        (("u8", 255, 128), ("u8", 256, 128), 0.01, 0),
        (("u8", 255, 0), ("u8", 256, 0), 0.008, 0.01),  # the other step: one scale holds not all values of both
        (("u8", 256, 0), ("u8", 256, 0), 0.008, 0.01),
        (("u8", 256, 0), ("i8", 255, 0), 0.008, 0.01),
    ],
)
def test_different_levels_in_quantize_dequantize_form(one, other, step, off):
    shape = (2, 4, 4, 4)
    branches = [
        quantize_dequantize(parameter(shape, name), *each, name) for name, each in zip("ab", (one, other), strict=True)
    ]
    kernel = weights([3, 8, 1, 1], 0.02)
    graph = model(opset1.convolution(opset1.concat(branches, 1), kernel, [1, 1], [0, 0], [0, 0], [1, 1]))
    result = Transformed(graph, **_RESTRICTIONS)
    assert result.transformed("Convolution")
    result.assert_numbers(off or 1e-5)


def test_levels_beyond_a_byte_stay_apart(assert_rejected):
    graph = before_convolution((0.0, 2.55, 256), (-1.0, 1.0, 65536))
    result = assert_rejected(graph, "FakeQuantizeDecomposition", "alignment", **_RESTRICTIONS)
    assert not result.transformed("Convolution")


def test_without_a_layer_that_wants_one_scale_each_keeps_its_own():
    high = np.float32(1.5)
    branches = [
        fake_quantize(parameter((2, 4, 4, 4), "x0"), 0.0, 2.55, 256, name="fq0"),
        fake_quantize(parameter((2, 4, 4, 4), "x1"), -high, high, 255, name="fq1"),
    ]
    Transformed(model(opset1.max_pool(opset1.concat(branches, 1), [1, 1], [0, 0], [0, 0], [2, 2]))).assert_numbers(1e-5)


@pytest.mark.parametrize("after", [False, True], ids=["quantized branches", "quantized after"])
def test_a_constant_branch_is_quantized_like_the_others(after):
    """As a class token is joined with patches. The native library leaves all in float."""
    x, token = parameter((2, 4, 4, 4), "x"), f32(np.random.default_rng(0).uniform(0, 3, (2, 4, 4, 4)))
    joined = opset1.concat([x, token] if after else [fake_quantize(each, 0.0, 2.55) for each in (x, token)], 1)
    data = fake_quantize(joined, 0.0, 2.55) if after else joined
    graph = model(opset1.convolution(data, weights([3, 8, 1, 1], 0.02), [1, 1], [0, 0], [0, 0], [1, 1]))
    result = Transformed(graph, **_RESTRICTIONS)
    result.assert_numbers()
    assert result.transformed("Convolution")
    assert not Transformed(graph, Params(native_only=True), **_RESTRICTIONS).transformed("Convolution")


def pooled(data):
    return opset1.max_pool(data, [1, 1], [0, 0], [0, 0], [2, 2])


def joined_without_need(is_pool_shared):
    """A narrow tensor, which a convolution reads after a pool, and a wide one, joined before what wants no common scale."""
    shape = (2, 4, 4, 4)
    narrow, wide = fake_quantize(parameter(shape, "x0"), -4.5, 4.5), fake_quantize(parameter(shape, "x1"), 0.0, 900.0)
    before = pooled(narrow)
    joined = opset1.concat([before, pooled(wide)] if is_pool_shared else [narrow, wide], 1)
    # in half of their range: without VNNI, two products are added in 16 bits
    kernel = dequantization(opset1.constant(np.arange(-60, 60, 10, np.int8).reshape(3, 4, 1, 1)), 0.02)
    scaled = opset1.multiply(joined, f32(np.linspace(1, 2, 8).reshape(1, 8, 1, 1)))
    return model(opset1.convolution(before, kernel, [1, 1], [0, 0], [0, 0], [1, 1]), scaled)


@pytest.mark.parametrize("is_pool_shared", [False, True])
def test_what_another_reader_needs_unites_no_intervals(core, is_pool_shared):
    rng, net = np.random.default_rng(0), joined_without_need(is_pool_shared)
    inputs = [rng.uniform(low, high, (2, 4, 4, 4)).astype(np.float32) for low, high in ((-4.5, 4.5), (0, 900))]
    expected = core.compile_model(net, "CPU", TRUTH)(inputs)
    compiled = ovlpt.compile_model(net, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}, core=core)
    found = compiled(inputs)
    for index in range(2):
        np.testing.assert_allclose(found[index], expected[index], rtol=1e-5, atol=1e-4)
    layers = [layer for layer in ovlpt.execution_types(compiled).executed if layer.layer_type == "Convolution"]
    assert [layer.is_int8 for layer in layers] == [True]
