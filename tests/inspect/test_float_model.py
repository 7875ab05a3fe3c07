"""The FakeQuantize simulation: right where the plugin, given the same model, is not."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.float_model import simulate, without_fake_quantize
from ovlpt.openvino_api import Model, NodeFactory, opset1, opset6
from tests.conftest import TRUTH
from tests.graphs import opset5
from tests.networks import const, convolution, model, parameter, quantized


def of_two_types() -> Model:
    """As quantizers leave it that turn what they do not quantize to f16: a pair in f32, and f16 around it."""
    x = parameter([1, 6, 6, 4])
    moved = opset1.transpose(opset1.convert(x, "f16"), const([0, 3, 1, 2], "i64"))
    bounds = [const(end) for end in (-1.28, 1.27, -128.0, 127.0)]
    stored = opset1.convert(opset1.fake_quantize(opset1.convert(moved, "f32"), *bounds, 256), "i8")
    restored = opset1.multiply(opset1.convert(stored, "f16"), const(0.01, "f16"))
    return model(convolution(opset1.convert(restored, "f32"), 4), x)


def test_a_model_of_two_types(core):
    """The plugin, its LPT off, cannot compile it: it moves the Transpose after a FakeQuantize of two types."""
    net = of_two_types()
    inputs = [np.random.default_rng(0).uniform(-1.2, 1.2, (1, 6, 6, 4)).astype(np.float32)]
    expected = simulate(net, core)(inputs)[0]
    result = ovlpt.compile_model(net, core=core, properties={"INFERENCE_PRECISION_HINT": "f32"})(inputs)[0]
    np.testing.assert_allclose(result, expected, atol=1e-2 * np.abs(expected).max())
    assert ovlpt.check(net, against="stock", core=core).ok


def test_a_group_normalization_that_is_summed(core):
    """As in residual networks without batch normalization: the plugin with its LPT off ended the process."""
    x, z = (parameter([1, 32, 4, 4], name=name) for name in "xz")
    first = opset1.relu(convolution(quantized(x, 0, 2.55), 32))
    skipped = quantized(opset1.relu(opset1.add(first, z)), 0, 2.55)
    inner, attributes = convolution(skipped, 32, seed=1), {"num_groups": 8, "epsilon": 1e-5}
    by_channel = [const(np.linspace(*ends, 32)) for ends in ((0.5, 2), (-1, 1))]
    normal = NodeFactory("opset12").create("GroupNormalization", [inner, *by_channel], attributes)
    net = model(opset1.add(normal, skipped), [x, z])
    inputs = [np.random.default_rng(seed).uniform(-1, 1, (1, 32, 4, 4)).astype(np.float32) for seed in range(2)]
    expected = simulate(net, core)(inputs)[0]
    result = ovlpt.compile_model(net, core=core, properties={"INFERENCE_PRECISION_HINT": "f32"})(inputs)[0]
    np.testing.assert_allclose(result, expected, atol=0.03 * np.abs(expected).max())


@pytest.mark.parametrize("operation", [opset1.multiply, opset1.divide, opset1.add, opset1.subtract])
@pytest.mark.parametrize("shape", [(1, 4, 5, 6), (2, 4, 1, 1)])
def test_normalized_data_of_open_sizes(core, operation, shape):
    """The plugin reads the constants that it fuses into the FakeQuantize wrongly: off by 15 to 150 %."""
    x, values = parameter([-1, 4, -1, -1]), np.array([0.5, 0.9, 1.4, 2.0], np.float32).reshape(1, 4, 1, 1)
    net = model(quantized(operation(x, const(values)), -2.56, 2.54), x)
    data = np.random.default_rng(0).uniform(-3, 3, shape).astype(np.float32)
    compute = {"Multiply": np.multiply, "Divide": np.divide, "Add": np.add, "Subtract": np.subtract}
    found = simulate(net, core)([data])[0]
    exact = compute[operation(x, const(values)).get_type_name()](data, values)
    np.testing.assert_allclose(found, np.clip(exact, -2.56, 2.54), atol=0.0101)


@pytest.mark.parametrize("swapped", [False, True])
def test_sums_by_column_after_a_clamp(core, swapped):
    """The plugin fuses them into the interval of the FakeQuantize, and exceeds its end where even the least sum lies above it."""
    random, x = np.random.default_rng(0), parameter([1, 8])
    weights, *shifts = (random.uniform(0.9, 1.6, shape).astype(np.float32) for shape in ((6, 8), (1, 6), (1, 6)))
    total = opset1.clamp(opset1.matmul(x, const(weights), False, True), -0.5, 0.7)
    for shift in shifts:
        total = opset1.add(const(shift), total) if swapped else opset1.add(total, const(shift))
    data = np.linspace(-2, 2.5, 8, dtype=np.float32)[None]
    (found,) = simulate(model(quantized(total, -1.3, 2.0), x), core)([data]).values()
    exact = np.clip(data @ weights.T, -0.5, 0.7) + sum(shifts)
    np.testing.assert_allclose(found, np.clip(exact, -1.3, 2.0), atol=0.0065)


def test_quantizations_to_16_bits_of_f16_beside_a_variable(core):
    """The plugin drops them; a model with variables keeps f16, which has neither 65535 nor the steps of a narrow interval."""
    x = parameter([1, 2, 8])
    ends = [const(end, "f16") for end in (0.0, 0.0166, 0.0, 0.0166)]
    narrow = opset1.fake_quantize(opset1.convert(x, "f16"), *ends, 65536)
    kept = opset6.read_value(const(np.zeros((1, 2, 8))), "kept", np.float32, [1, 2, 8])
    results = [opset1.convert(narrow, "f32"), kept]
    net = Model([opset1.result(each) for each in results], [opset6.assign(opset1.add(x, kept), "kept")], [x], "net")
    values = np.linspace(-0.01, 0.03, 16, dtype=np.float32).reshape(1, 2, 8)
    found = simulate(net, core)([values])[0]
    np.testing.assert_allclose(found, np.clip(values, 0, np.float16(0.0166)), atol=2e-5)


def test_quantized_weights_of_a_recurrent_layer(core):
    """Stored as floats: the plugin with its LPT off does not fold their FakeQuantize, and could not compile them."""

    def computed(is_quantized: bool) -> np.ndarray:
        random, size = np.random.default_rng(0), 4
        steps = [random.integers(-100, 100, (1, 3 * size, size)) * np.float32(0.01) for _ in range(2)]
        weights = [quantized(const(each + 0.004), -1.28, 1.27) if is_quantized else const(each) for each in steps]
        x, zeros = parameter([1, 3, size]), [const(np.zeros(shape)) for shape in ((1, 1, size), (1, 3 * size))]
        inputs = [quantized(x, -1.28, 1.27), zeros[0], const([3], "i64"), *weights, zeros[1]]
        layer = opset5.gru_sequence(*inputs, size, "forward")
        data = random.uniform(-1, 1, (1, 3, size)).astype(np.float32)
        return simulate(Model([layer.output(0)], [x]), core)([data])[0]

    np.testing.assert_allclose(computed(True), computed(False), atol=1e-6)


@pytest.mark.parametrize("operation", [opset1.add, opset1.subtract, opset1.multiply, opset1.divide])
def test_a_quantized_constant_before_other_data(core, operation):
    """As positions that are embedded: the plugin stored the result in its place, and read that in the next inference."""
    x, positions = parameter([1, 4, 8]), np.random.default_rng(1).uniform(0.5, 2, (1, 4, 8))
    net = model(operation(quantized(const(positions), 0, 2.55), opset1.relu(x)), x)
    inputs = [np.random.default_rng(0).uniform(0.5, 1, (1, 4, 8)).astype(np.float32)]
    compiled = simulate(net, core)
    first, second = (compiled(inputs)[0].copy() for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_quantized_state_of_a_known_shape_is_multiplied_before_a_sum(core):
    """As the first state of an unrolled recurrence, in the size that the data has, in a file of QuantizeLinear."""
    x = parameter([1, 8])
    state = quantized(opset1.broadcast(const(0.5), opset1.shape_of(x)), 0, 255)
    first = opset1.multiply(
        opset1.subtract(quantized(opset1.matmul(state, const(np.eye(8)), False, False), 0, 255), const(3)), const(0.5)
    )
    net = model(opset1.add(first, quantized(opset1.relu(x), 0, 2.55)), x)
    inputs = [np.random.default_rng(0).uniform(0.5, 1, (1, 8)).astype(np.float32)]
    compiled = simulate(net, core)
    first, second = (compiled(inputs)[0].copy() for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_what_scales_a_reduction_of_the_last_of_three_axes(core):
    """The plugin takes the scale by channel for that of another axis, in the float network, too: off by up to 300 %."""
    data = parameter([2, 8, 5])
    factor = np.linspace(0.5, 1.5, 8, dtype=np.float32)
    most = opset1.reduce_max(quantized(data, -2.56, 2.54), const([2], "i64"), False)
    plain = without_fake_quantize(model(opset1.multiply(most, const(factor[None])), data))
    values = np.random.default_rng(0).uniform(-2, 2, (2, 8, 5)).astype(np.float32)
    result = core.compile_model(plain, "CPU", TRUTH)([values])[0]
    np.testing.assert_allclose(result, values.max(axis=2) * factor, rtol=1e-5)


def test_weights_by_column_of_their_windows_before_a_scale(core):
    """As smoothing leaves them (a text recognizer): the plugin moved the scale into them, in another shape, and threw."""
    x = parameter([1, 8, 1, 14])
    generator = np.random.default_rng(0)
    bound, stored = generator.uniform(0.5, 1, (8, 1, 1, 1, 7)), generator.uniform(-1, 1, (8, 1, 1, 1, 7))
    ends = [const(each) for each in (-bound, bound)] * 2
    weights = opset1.fake_quantize(const(stored), *ends, 255)
    layer = opset1.group_convolution(x, weights, [1, 1], [0, 3], [0, 3], [1, 1])
    scale = generator.uniform(0.5, 2, (1, 8, 1, 1)).astype(np.float32)
    net = model(opset1.multiply(layer, const(scale)), x)
    data = generator.uniform(-1, 1, (1, 8, 1, 14)).astype(np.float32)
    wide = np.pad(data[0, :, 0], ((0, 0), (3, 3)))
    rounded = np.rint(np.clip(stored / bound, -1, 1) * 127).reshape(8, 7) / 127 * bound.reshape(8, 7)
    windows = np.lib.stride_tricks.sliding_window_view(wide, 7, axis=1)
    expected = np.einsum("cwk,ck->cw", windows, rounded)[None, :, None] * scale
    np.testing.assert_allclose(simulate(net, core)([data])[0], expected, atol=1e-4)
