from __future__ import annotations

import numpy as np
import pytest

from ovlpt import data
from ovlpt.device import compile_quantized, saturates, transform
from ovlpt.interpreter import Interpreter, execute, layers_of
from ovlpt.interpreter.evaluation import evaluate
from ovlpt.openvino_api import Type, opset1, opset8
from ovlpt.reference import Quantization, convolution
from ovlpt.trace import InputError
from tests import networks
from tests.conftest import EXACT, assert_close, inputs_of
from tests.networks import const, int8_weights, model, parameter, quantized


def weighted(kind: str):
    """One quantized weighted operation with a zero point, and real numbers after it."""
    x = parameter([2, 5, 12] if kind == "inner" else [2, 8, 9, 7])
    low = -1.28 if kind in ("transposed", "two activations") else -1.0
    q = quantized(x, low, low + 2.55)
    if kind == "normal":
        node = opset1.convolution(q, int8_weights([6, 8, 3, 2]), [2, 1], [1, 0], [0, 1], [1, 2])
    elif kind == "same_lower":
        node = opset1.convolution(q, int8_weights([6, 8, 2, 4]), [2, 2], [0, 0], [0, 0], [1, 1], "same_lower")
    elif kind == "same_upper":
        node = opset1.convolution(q, int8_weights([6, 8, 2, 4]), [1, 1], [0, 0], [0, 0], [1, 1], "same_upper")
    elif kind == "grouped":
        stored = const(np.random.default_rng(0).integers(-127, 128, (4, 3, 2, 3, 3)), "i8")
        scales = const(np.random.default_rng(1).uniform(0.002, 0.01, (4, 3, 1, 1, 1)))
        weights = opset1.multiply(opset1.convert(stored, "f32"), scales)
        node = opset1.group_convolution(q, weights, [1, 1], [1, 1], [1, 1], [1, 1])
    elif kind == "depthwise":
        node = networks.depthwise(q)
    elif kind == "transposed":
        node = opset1.convolution_backprop_data(
            q,
            int8_weights([8, 6, 3, 3], axis=1),
            [2, 2],
            pads_begin=[1, 0],
            pads_end=[0, 1],
            output_padding=[1, 0],
        )
    elif kind == "inner":
        node = opset1.matmul(q, int8_weights([7, 12]), False, True)
    else:
        node = opset1.matmul(q, opset1.transpose(quantized(x, -1.28, 1.27), const([0, 1, 3, 2], "i64")), False, False)
    return model(node, x)


@pytest.mark.parametrize(
    "kind",
    ["normal", "same_lower", "same_upper", "grouped", "depthwise", "transposed", "inner", "two activations"],
)
def test_a_weighted_operation_equals_the_plugin(kind, core):
    net = weighted(kind)
    transformed = transform(net, lowered=False, core=core)
    assert len(list(layers_of(transformed))) == 1
    arrays = inputs_of(net)
    expected = compile_quantized(net, "CPU", EXACT, core=core)(arrays)
    assert_close(execute(transformed, arrays, saturates=saturates(core)), list(expected.values()))


@pytest.mark.parametrize("low", [0.0, -1.28], ids=["u8", "i8"])
@pytest.mark.parametrize(
    "groups, inputs, outputs", [(2, 4, 4), (4, 2, 3), (8, 3, 3), (8, 1, 1), (8, 1, 2)], ids=str
)  # by a kernel for pairs, in f32, by a product, depthwise
def test_a_transposed_convolution_of_groups_equals_the_plugin(groups, inputs, outputs, low, core):
    """With weights that overflow 16 bits where pairs are added there."""
    stored = np.random.default_rng(0).integers(-127, 128, (groups, inputs, outputs, 3, 3))
    scales = const(np.random.default_rng(1).uniform(0.002, 0.01, (groups, 1, outputs, 1, 1)))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), scales)
    x = parameter([2, groups * inputs, 9, 7])
    node = opset1.group_convolution_backprop_data(
        quantized(x, low, low + 2.55), weights, [2, 2], pads_begin=[1, 0], pads_end=[0, 1], output_padding=[1, 0]
    )
    net = model(node, x)
    transformed = transform(net, lowered=False, core=core)
    assert [layer.type for layer in layers_of(transformed)] == ["GroupConvolutionBackpropData"]
    arrays = [np.random.default_rng(5).uniform(low, low + 2.55, x.get_output_shape(0)).astype(np.float32)]
    expected = compile_quantized(net, "CPU", EXACT, core=core)(arrays)
    assert_close(execute(transformed, arrays, saturates=saturates(core)), list(expected.values()))


@pytest.mark.parametrize("make", [networks.residual, networks.shared_zero_point, networks.encoder])
def test_lowering_changes_no_bit(make, core):
    net = make()
    arrays = inputs_of(net)
    results = [execute(transform(net, lowered=lowered, core=core), arrays) for lowered in (False, True)]
    for plain, lowered in zip(*results, strict=True):
        assert (plain == lowered).all()


def test_the_digits_network_answers_as_compiled(core):
    images, _ = data.heldout()
    transformed = transform(data.digits(), lowered=False, core=core)
    compiled = compile_quantized(data.digits(), "CPU", EXACT, core=core)
    for image in images[:10, None]:
        assert execute(transformed, [image])[0].argmax() == compiled([image])[0].argmax()


def test_values_hold_every_layer_but_nothing_inside_one(core):
    net = networks.residual()
    transformed = transform(net, lowered=False, core=core)
    values: dict[str, np.ndarray] = {}
    outputs = execute(transformed, inputs_of(net), values=values)
    layers = list(layers_of(transformed))
    assert len(layers) == 3
    for layer in layers:
        assert values[layer.end.get_friendly_name()].shape == tuple(layer.end.get_output_shape(0))
        for inside in (layer.node, *layer.chain)[:-1]:
            assert inside.get_friendly_name() not in values
    assert (values[transformed.get_results()[0].input_value(0).get_node().get_friendly_name()] == outputs[0]).all()


def test_accumulators_are_exact_integers(core):
    net = networks.one_convolution()
    interpreter = Interpreter(transform(net, lowered=False, core=core), inputs_of(net))
    ((layer, integers),) = interpreter.run()
    x = interpreter.value(layer.node.input_value(0)).astype(object)
    w = layer.node.input_value(1).get_node().data.astype(object)
    assert integers.dtype == np.int64
    assert integers[0, 3, 4, 5] == (x[0, :, 3:6, 4:7] * w[3]).sum()


@pytest.mark.parametrize("method", ["tflite-reference", "tflite", "onnx", "torch-onednn", "openvino"])
def test_a_layer_has_the_frameworks_own_rounding(method, core):
    """Scales are powers of two, so that no product of scales is rounded and ties are many."""
    x = parameter([1, 4, 6, 6])
    low, high = -32 / 64, (255 - 32) / 64
    weights = np.random.default_rng(3).integers(-127, 128, (5, 4, 3, 3)).astype(np.int8)
    scales = np.exp2(np.arange(-9, -4)).astype(np.float32).reshape(5, 1, 1, 1)
    w = opset1.multiply(opset1.convert(const(weights, "i8"), "f32"), const(scales))
    bias = 2.0**-9 * np.arange(5).reshape(1, 5, 1, 1)
    node = opset1.convolution(quantized(x, low, high), w, [1, 1], [1, 1], [1, 1], [1, 1])
    net = model(quantized(opset1.add(node, const(bias)), -8, 8 - 1 / 16, name="out"), x)
    array = np.random.default_rng(4).uniform(low, high, (1, 4, 6, 6)).astype(np.float32)
    transformed = transform(net, lowered=False, core=core)
    interpreter = Interpreter(transformed, [array], method)
    ((layer, _),) = interpreter.run()
    levels = interpreter.value(layer.end.output(0))
    levels = np.rint((interpreter.outputs()[0] + 8) * 16) if levels.dtype == np.float32 else levels.astype(int)
    q = np.rint(array * 64).astype(int) + 32
    shift = 128 if method.startswith("tflite") else 0  # TFLite has no u8 with i8 weights
    precision, dtype = ("i8", np.int8) if shift else ("u8", np.uint8)
    expected = convolution(
        (q - shift).astype(dtype),
        Quantization(1 / 64, 32 - shift, precision),
        weights,
        Quantization(scales.ravel(), 0, "i8", 0),
        np.rint(bias.ravel() * 64 / scales.ravel()).astype(int),
        Quantization(1 / 16, 128 - shift, precision),
        pads_begin=[1, 1],
        method=method,
    )
    assert (levels - levels.min() == expected.astype(int) - expected.min()).all()
    assert len(np.unique(expected)) > 50


def test_methods_differ_at_ties_only(core):
    image = data.heldout()[0][:1]
    transformed = transform(data.digits(), lowered=False, core=core)
    found = {}
    for method in ("openvino", "onnx", "tflite-2.5"):
        interpreter = Interpreter(transformed, [image], method)
        layer, _ = next(interpreter.run())
        found[method] = interpreter.value(layer.end.output(0)).astype(int)
    assert np.abs(found["onnx"] - found["openvino"]).max() <= 1
    assert 0 < np.mean(found["tflite-2.5"] != found["openvino"]) < 0.05


def test_an_operation_without_a_reference_runs_alone(core):
    x = parameter([1, 16, 8, 8])
    q = quantized(networks.convolution(quantized(x, 0, 2.55), 16), -4, 4)
    rolled = opset8.roll(q, const([1, 2], "i64"), const([2, 3], "i64"))
    net = model(networks.convolution(quantized(rolled, -4, 4), 8, seed=1), x)
    arrays = inputs_of(net)
    expected = compile_quantized(net, "CPU", EXACT, core=core)(arrays)
    assert_close(execute(transform(net, lowered=False, core=core), arrays), list(expected.values()))


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
def test_pooling_of_integers(rounding, core):
    x = parameter([1, 4, 9, 9])
    pooled = opset1.max_pool(quantized(x, 0, 2.55), [2, 2], [1, 1], [1, 1], [3, 3], rounding)
    averaged = opset1.avg_pool(pooled, [2, 2], [0, 0], [0, 0], [2, 2], True, rounding)
    net = model(networks.convolution(averaged, 4), x)
    arrays = inputs_of(net)
    expected = compile_quantized(net, "CPU", EXACT, core=core)(arrays)
    assert_close(execute(transform(net, lowered=False, core=core), arrays), list(expected.values()))


def test_a_dynamic_batch(core):
    net = networks.one_convolution()
    net.reshape([-1, 16, 8, 8])
    array = np.ones((3, 16, 8, 8), np.float32)
    transformed = transform(net, lowered=False, core=core)
    assert execute(transformed, [array])[0].shape == (3, 32, 8, 8)
    assert transformed.is_dynamic()


@pytest.mark.parametrize(
    "arrays, method, words",
    [
        ([], "openvino", "1 inputs and 0 arrays"),
        ([np.ones((1, 3, 8, 8))], "openvino", r"takes \[1, 16, 8, 8\]"),
        ([np.ones((1, 16, 8, 8))], "tensorrt", "'tensorrt' is unknown"),
    ],
)
def test_unusable_input(arrays, method, words, core):
    transformed = transform(networks.one_convolution(), lowered=False, core=core)
    with pytest.raises(InputError, match=words):
        execute(transformed, arrays, method)


def test_a_method_without_the_layer_says_so(core):
    net = networks.residual()
    with pytest.raises(InputError, match="no such quantized operator"):
        execute(transform(net, lowered=False, core=core), inputs_of(net), "caffe2")


def test_a_scalar_stays_one():
    """An axis, for instance."""
    data = np.arange(8, dtype=np.float32).reshape(1, 8)
    node = opset1.split(parameter([1, 8]), opset1.constant(np.array(1)), 2)
    found = evaluate(node, [data, np.array(1)])
    np.testing.assert_array_equal(np.concatenate(found, 1), data)


@pytest.mark.parametrize("precision", ["u4", "i4", "bf16", "f8e4m3"])
def test_what_moves_values_of_a_type_that_numpy_lacks_stays_within_its_memory(precision):
    """Given float32 instead, a Reshape writes up to eight times of what its output holds, and the process ends later."""
    stored = np.random.default_rng(0).integers(0, 8, (16, 24)).astype(np.float32)
    x = parameter([2, 384], "f32")
    weights = opset1.constant(stored, getattr(Type, precision))
    moved = opset1.reshape(weights, const([4, 4, 24], "i64"), False)
    moved = opset1.reshape(opset1.transpose(moved, const([1, 0, 2], "i64")), const([384, 1], "i64"), False)
    net = model(opset1.matmul(x, opset1.convert(moved, "f32"), False, False), x)
    data = np.random.default_rng(1).uniform(-1, 1, (2, 384)).astype(np.float32)
    expected = data @ stored.reshape(4, 4, 24).transpose(1, 0, 2).reshape(384, 1)
    assert_close(execute(net, [data]), [expected])
