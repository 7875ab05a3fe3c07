"""The GPU plugin on a virtual GPU: with its own LPT off every layer is as precise, or in int8 where it was not."""

from __future__ import annotations

import shutil
from collections import Counter

import numpy as np
import pytest
from ovlpt.plugin_config import gpu

import ovlpt
from ovlpt import data
from ovlpt.device import PluginLowering, subprocess_call, virtual_gpu
from ovlpt.openvino_api import RELAXES_EVERY_OPSET, RELEASE, Core, Manager, Model, opset1, opset6
from tests.conftest import EXACT
from tests.graphs import NodeFactory
from tests.networks import const, convolution, int8_weights, model, parameter, quantized
from tools.parity.compare import compare
from tools.parity.stock import before_and_after

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="a virtual GPU needs a C compiler"
)


def bidirectional() -> Model:
    """The plugin makes two sequences of it before its LPT."""
    x = parameter([1, 6, 8])
    states = [const(np.zeros((1, 2, 4))) for _ in range(2)]
    weights = [const(np.full(shape, 0.1)) for shape in ((2, 16, 8), (2, 16, 4), (2, 16))]
    activations = ["sigmoid", "tanh", "tanh"]
    attributes = {"direction": "bidirectional", "hidden_size": 4, "activations": activations, "clip": 0.0}
    inputs = [quantized(x, -1.28, 1.27), *states, const([6], "i64"), *weights]
    sequence = NodeFactory("opset5").create("LSTMSequence", [each.output(0) for each in inputs], attributes)
    last = opset1.reshape(sequence.output(0), const([6, 8], "i64"), False)
    return model(opset1.matmul(quantized(last, -1, 1), int8_weights([8, 16]), False, False), x)


def normalized() -> Model:
    """Over the last axis of rank 4: a kernel here, decomposed on a CPU."""
    x = parameter([1, 16, 8, 8])
    rows = opset1.transpose(convolution(quantized(x, 0, 2.55), 16, name="conv"), const([0, 2, 3, 1], "i64"))
    low = quantized(rows, -1.28, 1.27)
    deviation = NodeFactory("opset6").create(
        "MVN", [low.output(0), const([3], "i64").output(0)],
        {"normalize_variance": True, "eps": 1e-6, "eps_mode": "inside_sqrt"},
    )  # fmt: skip
    return model(opset1.matmul(quantized(deviation, -3, 3), int8_weights([16, 8]), False, False), x)


def asymmetric() -> Model:
    """A zero point before a Transpose, in floats: a Convert would be a layer of its own."""
    x = parameter([1, 16, 8, 8])
    low = quantized(convolution(quantized(x, 0, 2.55), 16, name="conv"), -0.3, 2.25)
    both = opset1.add(low, quantized(opset1.sigmoid(x), -0.1, 1.0))
    return model(opset1.softmax(opset1.transpose(both, const([0, 2, 3, 1], "i64")), 3), x)


def attention() -> Model:
    """A mean of integers whose scale stands before a float layer: in half precision that layer must not turn to f32."""
    x = parameter([1, 16, 8, 8])
    low = quantized(opset1.relu(x), 0, 2.55)
    mean = opset1.reduce_mean(low, const([2, 3], "i64"), True)
    weights = const(np.random.default_rng(0).standard_normal((16, 16, 1, 1)))
    squeezed = opset1.sigmoid(opset1.convolution(mean, weights, [1, 1], [0, 0], [0, 0], [1, 1]))
    scaled = opset1.multiply(low, quantized(squeezed, 0, 1))
    return model(convolution(quantized(scaled, 0, 2.55), 16, name="last"), x)


def columns() -> Model:
    """Weights that are not transposed."""
    x = parameter([2, 16])
    return model(opset1.matmul(quantized(x, 0, 2.55), int8_weights([16, 32], axis=1), False, False), x)


def clipped() -> Model:
    """Integers are clipped, and the next quantization does not cut off as much: a Convert would be a layer."""
    x = parameter([1, 16, 8, 8])
    small = quantized(convolution(quantized(x, 0, 2.55), 16, name="conv"), -3, 5)
    clamp = opset1.clamp(opset1.depth_to_space(small, "blocks_first", 2), -1.5, 1.5)
    return model(convolution(quantized(clamp, -2, 1.98), 4, name="last"), x)


def shared_zero_point() -> Model:
    """Integers less a zero point, before a layer and in floats."""
    x = parameter([1, 16, 8, 8])
    low = quantized(x, -1.0, 1.55)
    return model([convolution(low, 16, name="conv"), opset1.sigmoid(low)], x)


def strided() -> Model:
    """Layers of single elements on data with a zero point, through which a stride would be moved up."""
    x = parameter([1, 16, 8, 8])
    low, weights = quantized(x, -1.0, 1.55), int8_weights([16, 16, 1, 1])
    layers = [opset1.convolution(low, weights, [2, 2], [0, 0], [pad, pad], [1, 1]) for pad in (0, 1)]
    return model([opset1.relu(layer) for layer in layers], x)


def float_layer() -> Model:
    """Integers of an open batch before a layer of float weights, which would take their scale in."""
    x = parameter([-1, 8, 6, 6])
    low, attributes = quantized(x, -1.28, 1.27), ([1, 1], [0, 0], [0, 0], [1, 1])
    weights = const(np.random.default_rng(0).standard_normal((4, 8, 1, 1)))
    int8 = opset1.convolution(low, int8_weights([8, 8, 1, 1]), *attributes)
    return model([opset1.relu(int8), opset1.convolution(low, weights, *attributes)], x)


def weights_zero_point() -> Model:
    """Integer weights less a zero point, of either sign and by channel: folded they would be floats."""
    x = parameter([1, 16, 12, 12])
    low, generator, attributes = quantized(x, 0, 2.55), np.random.default_rng(0), ([1, 1], [1, 1], [1, 1], [1, 1])

    def weights(shape, precision, zero_point):
        stored = const(generator.integers(*((0, 256) if precision == "u8" else (-128, 128)), shape), precision)
        shifted = opset1.subtract(opset1.convert(stored, "f32"), const(zero_point))
        return opset1.multiply(shifted, const(generator.uniform(0.002, 0.01, [shape[0], *[1] * (len(shape) - 1)])))

    by_channel = np.arange(90, 106).reshape(16, 1, 1, 1)
    layers = [
        opset1.convolution(low, weights([16, 16, 3, 3], "u8", by_channel), *attributes),
        opset1.convolution(low, weights([8, 16, 3, 3], "i8", -37), *attributes),
        opset1.group_convolution(low, weights([16, 1, 1, 3, 3], "u8", 91), *attributes),
    ]
    return model(layers, x)


def shared_weights() -> Model:
    """Integer weights of a layer of integers and of one that stays in float, as the first step of a recurrence does."""
    x, y = parameter([1, 8, 6, 6]), parameter([1, 8, 6, 6], name="y")
    weights, attributes = int8_weights([8, 8, 3, 3]), ([1, 1], [1, 1], [1, 1], [1, 1])
    return model([opset1.convolution(data, weights, *attributes) for data in (quantized(x, 0, 2.55), y)], [x, y])


def waves() -> Model:
    """Sines and cosines, as an encoding of places has them: the plugin computes them in f32, and a Reorder followed each."""
    x = parameter([1, 8, 16])
    angles = [opset1.multiply(x, const(2.0**octave)) for octave in range(4)]
    parts = [
        quantized(x, -1, 0.992),
        *(quantized(wave(angle), -1, 0.992) for angle in angles for wave in (opset1.sin, opset1.cos)),
    ]
    return model(opset1.matmul(opset1.concat(parts, 2), int8_weights([16, 16 * len(parts)]), False, True), x)


def snakes() -> Model:
    """The activation of DAC's codec, ``x + sin(x)**2``, after a residual: the square reads what the sine was rounded to."""
    x = parameter([1, 8, 64])
    data = quantized(x, -1.28, 1.27)
    value = opset1.add(data, layer_over_one_axis(data))
    for seed in range(3):
        wave = quantized(opset1.sin(opset1.multiply(value, const(1.5))), -1, 0.992)
        snake = opset1.add(value, quantized(opset1.power(wave, const(2)), 0, 1))
        value = opset1.add(value, layer_over_one_axis(quantized(snake, -2.56, 2.54), seed))
    return model(value, x)


def layer_over_one_axis(data, seed: int = 0):
    return opset1.convolution(data, int8_weights([8, 8, 3], seed=seed), [1], [1], [1], [1])


def shuffled() -> Model:
    """Eight shuffles of channels, one half of each result convolved: in pieces there would be many more layers."""
    x = parameter([1, 16, 12, 12])
    value = quantized(opset1.relu(convolution(quantized(x, 0, 3), 32, 1)), 0, 4)
    for seed in range(8):
        mixed = NodeFactory("opset1").create("ShuffleChannels", [value.output(0)], {"axis": 1, "group": 2})
        first, second = opset1.split(mixed, const(1, "i64"), 2).outputs()
        changed = opset1.convolution(first, int8_weights([16, 16, 1, 1], seed=seed), [1, 1], [0, 0], [0, 0], [1, 1])
        value = opset1.concat([quantized(opset1.relu(changed), 0, 4).output(0), second], 1)
    return model(convolution(value, 8, 1), x)


NETWORKS = {each.__name__: each for each in (
    bidirectional, normalized, asymmetric, attention, columns, clipped,
    shared_zero_point, shuffled, strided, float_layer, weights_zero_point, shared_weights, waves, snakes,
)}  # fmt: skip
if not RELAXES_EVERY_OPSET:  # MVN-6 cannot be relaxed
    del NETWORKS["normalized"]
if RELEASE < (2025, 0):  # there the plugin's own LPT leaves all of it in float, of fewer layers
    del NETWORKS["float_layer"]


def layers_on(gpu_name: str) -> dict[tuple[str, bool], tuple[Counter, Counter]]:
    """By network and whether floats are f32, layers by their type and precision: with the plugin's own LPT, and with
    ovlpt.
    """
    virtual_gpu.load(gpu_name)
    core, found = Core(), {}
    core.get_property("CPU", "FULL_DEVICE_NAME")
    for name, source in {**NETWORKS, "digits": lambda: core.read_model(data.digits())}.items():
        network = source()
        for exact in (True, False):
            properties = {**virtual_gpu.properties(gpu_name), **(EXACT if exact else {})}
            stock = core.compile_model(network, "GPU", properties)
            mine = ovlpt.compile_model(network, "GPU", properties, core=core)
            found[name, exact] = tuple(
                Counter(
                    (layer.layer_type, "int8" if layer.precision in ("u8", "i8") else layer.precision)
                    for layer in ovlpt.execution_types(each).executed
                )
                for each in (stock, mine)
            )
    return found


@pytest.mark.parametrize("gpu_name", ["xelp", "dg2"])
def test_every_layer_is_as_precise(gpu_name):
    found = subprocess_call.call(layers_on, gpu_name)[0]
    assert len(found) == 2 * (len(NETWORKS) + 1)
    for (name, exact), (stock, mine) in found.items():
        for kind in {kind for kind, precision in stock if precision == "int8"} - {"Reorder", "Result"}:
            floats = [sum(count[kind, precision] for precision in ("f16", "f32")) for count in (mine, stock)]
            in_float = floats[0] <= floats[1]
            assert in_float or mine[kind, "int8"] >= stock[kind, "int8"], (name, kind, stock, mine)
        if not exact:  # a layer of floats takes half precision
            assert mine["Convolution", "f32"] <= stock["Convolution", "f32"], (name, stock, mine)
        extra = sum(mine.values()) - sum(stock.values())
        assert extra <= 0, (name, exact, stock, mine)


def decomposed_on(gpu_name: str) -> list[bool]:
    """A normalization without a kernel, in a pipeline without the common optimizations: whether layers read integers."""
    virtual_gpu.load(gpu_name)
    core, x = Core(), parameter([1, 4, 3, 4, 4])
    core.get_property("CPU", "FULL_DEVICE_NAME")
    properties = {**virtual_gpu.properties(gpu_name), **EXACT, "LP_TRANSFORMS_MODE": False}
    normal = opset6.mvn(quantized(x, -1.28, 1.27), const([2, 3], "i64"), True, 1e-6, "inside_sqrt")
    net, manager = model(quantized(normal, -3, 3), x), Manager()
    manager.register_pass(ovlpt.LowPrecision.from_config(ovlpt.plugin_config.for_device(core, "GPU")))
    manager.register_pass(PluginLowering("GPU"))
    manager.run_passes(net)
    layers = ovlpt.execution_types(core.compile_model(net, "GPU", properties)).executed
    return [layer.precision in ("u8", "i8") for layer in layers if layer.layer_type == "Reduce"]


@pytest.mark.skipif(not RELAXES_EVERY_OPSET, reason="MVN-6 cannot be relaxed")
def test_a_normalization_without_a_kernel_is_decomposed_in_floats():
    found = subprocess_call.call(decomposed_on, "xelp")[0]
    assert found
    assert not any(found)


def precisions_of_scaled_columns_on(gpu_name: str) -> set[str]:
    """What layers read after a scale along the last axis that alone reads a quantization."""
    virtual_gpu.load(gpu_name)
    core, x = Core(), parameter([1, 3, 2, 4])
    scaled = opset1.multiply(quantized(x, -1.28, 1.27), const(np.linspace(0.5, 2, 4).reshape(1, 1, 1, 4)))
    properties = {**virtual_gpu.properties(gpu_name), **EXACT}
    compiled = ovlpt.compile_model(model(opset1.sigmoid(scaled), x), "GPU", properties, core=core)
    return {layer.precision for layer in ovlpt.execution_types(compiled).executed}


def test_a_scale_that_alone_reads_a_quantization():
    """It would become the interval of integers, on which the sigmoid then throws."""
    assert subprocess_call.call(precisions_of_scaled_columns_on, "xelp")[0] == {"f32"}


def grouped_deconvolution() -> Model:
    x = parameter([1, 32, 8, 8])
    weights = int8_weights([2, 16, 16, 2, 2], axis=2)
    return model(opset1.group_convolution_backprop_data(quantized(x, 0, 2.55), weights, [2, 2]), x)


def of_different_levels() -> Model:
    """A signed tensor of 255 levels and an unsigned one of 256, with one step."""
    x = parameter([1, 16, 8, 8])
    signed = quantized(opset1.sigmoid(x), -1.27, 1.27, 255)
    return model(convolution(opset1.concat([signed, quantized(opset1.relu(x), 0, 2.55)], 1), 16, name="conv"), x)


def int8_layers_on(gpu_name: str) -> list[tuple[list[bool], list[bool]]]:
    """Of each layer with weights in networks that the native library has no rule for: whether it reads integers, with
    the plugin's own LPT, and with ovlpt.
    """
    virtual_gpu.load(gpu_name)
    core, properties, found = Core(), virtual_gpu.properties(gpu_name), []
    core.get_property("CPU", "FULL_DEVICE_NAME")
    for network in (grouped_deconvolution(), of_different_levels()):
        compiled = (
            core.compile_model(network, "GPU", properties),
            ovlpt.compile_model(network, "GPU", properties, core=core),
        )
        found.append(
            tuple(
                [
                    layer.precision in ("u8", "i8")
                    for layer in ovlpt.execution_types(each).executed
                    if layer.layer_type in ("Convolution", "Deconvolution")
                ]
                for each in compiled
            )
        )
    return found


@pytest.mark.parametrize("gpu_name", ["xelp", "dg2"])
def test_layers_that_stock_runs_in_float(gpu_name):
    assert subprocess_call.call(int8_layers_on, gpu_name)[0] == [([False], [True])] * 2


def refusals_on(gpu_name: str) -> tuple[str, str]:
    virtual_gpu.load(gpu_name)
    core = Core()
    try:
        ovlpt.transform(data.digits(), "GPU", core=core)
    except ovlpt.trace.InputError as error:
        forced = ovlpt.plugin_config.for_device(core, "GPU", force=True)
        return str(error), ovlpt.transform(data.digits(), "GPU", forced, core=core).get_friendly_name()
    return "", ""


def test_a_gpu_without_int8_is_refused():
    sentence, name = subprocess_call.call(refusals_on, "gen9")[0]
    assert "has no int8" in sentence
    assert "force=True" in sentence
    assert name


@pytest.mark.skipif(RELEASE < (2025, 0), reason="the native pass of 2024.6 is an older one")
@pytest.mark.parametrize("gpu_name", ["xelp", "dg2"])
def test_the_configuration_gives_the_native_result(gpu_name):
    before, after = before_and_after(data.digits(), gpu_name)
    manager = Manager()
    config = gpu.config(systolic=virtual_gpu.GPUS[gpu_name] == virtual_gpu.XMX)
    manager.register_pass(ovlpt.LowPrecision.from_config(config, native_only=True))
    manager.run_passes(before)
    result = compare(after, before)
    assert result.equal, result.differences


def attention(size: int, heads: int = 2) -> Model:
    """Of quantized queries and keys, given as one operation; ``size``: of a head."""
    inputs = [parameter([1, heads, 10, size], name=name) for name in ("query", "key", "value")]
    query, key = (quantized(each, -2.56, 2.54) for each in inputs[:2])
    made = NodeFactory("opset13").create(
        "ScaledDotProductAttention", [each.output(0) for each in (query, key, inputs[2])], {"causal": False}
    )
    return model(made, inputs)


@pytest.mark.parametrize(
    ("size", "systolic", "precision", "is_whole"),
    [(64, False, "f16", True), (64, False, "f32", False), (64, True, "f16", False), (32, False, "f16", False)],
)
def test_an_attention_stays_whole_where_the_plugin_fuses_it(core, size, systolic, precision, is_whole):
    """Beside it, decomposed, stock has fewer layers, and none of them in int8."""
    result = ovlpt.transform(attention(size), "GPU", gpu.config(systolic), core=core, precision=precision)
    kinds = [node.get_type_name() for node in result.get_ops()]
    assert ("ScaledDotProductAttention" in kinds) == is_whole
    assert ("MatMul" in kinds) != is_whole


def layers_of_attention() -> list[list[str]]:
    """Types of layers executed in f16, with ovlpt and with the plugin's own LPT."""
    virtual_gpu.load("xelp")
    core, properties, net = Core(), {"INFERENCE_PRECISION_HINT": "f16"}, attention(64)
    both = ovlpt.compile_model(net, "GPU", properties, core=core), core.compile_model(net, "GPU", properties)
    return [[layer.layer_type for layer in ovlpt.execution_types(each).executed] for each in both]


def test_a_whole_attention_has_no_more_layers_than_stock():
    mine, stock = subprocess_call.call(layers_of_attention)[0]
    assert len(mine) <= len(stock)
    assert not {"Gemm", "SoftMax"} & {*mine}
