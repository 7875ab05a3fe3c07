"""Weights stored in few bits, which the plugin's kernels read wrongly where rows or blocks do not fill what they read at once."""

from __future__ import annotations

import numpy as np
import pytest
from openvino import Type

import ovlpt
from ovlpt.device.compile import float_types
from ovlpt.openvino_api import RELEASE, opset1
from tests.canonicalize.test_four_bit_integers import KINDS, check
from tests.conftest import EXACT
from tests.lowered import FORMS, compiled_in
from tests.networks import const, int8_weights, model, parameter, quantized

pytestmark = pytest.mark.filterwarnings("ignore:.*compressed weights only")


@pytest.mark.parametrize("kind", ["u4", "i4"])
@pytest.mark.parametrize("moved", ["", "reshaped", "transposed"])
@pytest.mark.parametrize("is_quantized", [True, False])
def test_four_bits_of_an_odd_number_of_inputs(core, kind, moved, is_quantized):
    """Stock reads them wrongly for several rows of data: off by up to 60 % of the largest."""
    random, x = np.random.default_rng(3), parameter([2, 5, 9])
    stored, point, scale = (
        random.integers(*KINDS[kind], (9, 8)),
        random.integers(*KINDS[kind], (1, 8)),
        random.uniform(1, 2, (1, 8)),
    )
    whole = opset1.constant(stored if moved != "transposed" else stored.T, getattr(Type, kind))
    points = opset1.constant(point, getattr(Type, kind))
    if moved == "reshaped":
        whole, points = (opset1.unsqueeze(each, const([0], "i64")) for each in (whole, points))
    elif moved:
        whole = opset1.transpose(whole, const([1, 0], "i64"))
    integers = opset1.subtract(opset1.convert(whole, "f32"), opset1.convert(points, "f32"))
    factor = opset1.multiply(integers, const(scale))
    if moved == "reshaped":
        factor = opset1.reshape(factor, const([9, 8], "i64"), False)
    net = model(opset1.matmul(quantized(x, -1.28, 1.27) if is_quantized else x, factor, False, False), x)
    data = random.uniform(-1.2, 1.2, (2, 5, 9)).astype(np.float32)
    check(core, net, data, (np.rint(data / 0.01) * 0.01 if is_quantized else data) @ ((stored - point) * scale))


@pytest.mark.parametrize(("kind", "block"), [("u4", 5), ("i4", 36), ("u4", 48), ("u8", 6), ("u8", 26)])
@pytest.mark.parametrize("rows", [1, 12])
@pytest.mark.parametrize("is_turned", [True, False])
@pytest.mark.parametrize("is_quantized", [True, False])
def test_blocks_of_other_sizes_than_kernels_read(core, kind, block, rows, is_turned, is_quantized):
    """Stock has one row wrong, and blocks of five for several rows, too: off by as much as the result, or as memory holds."""
    random, inputs, outputs = np.random.default_rng(3), 2 * block, 16
    axis, shape = (2, (outputs, 2, block)) if is_turned else (1, (2, block, outputs))
    by_block = tuple(1 if each == axis else size for each, size in enumerate(shape))
    stored, scale = (
        random.integers(*KINDS.get(kind, (0, 256)), shape),
        random.uniform(0.5, 1.5, by_block).astype(np.float32),
    )
    integers = opset1.convert(opset1.constant(stored, getattr(Type, kind)), "f32")
    flat = (outputs, inputs) if is_turned else (inputs, outputs)
    factor = opset1.reshape(opset1.multiply(integers, const(scale)), const(flat, "i64"), False)
    x = parameter([rows, inputs])
    net = model(opset1.matmul(quantized(x, -1.28, 1.27) if is_quantized else x, factor, False, is_turned), x)
    data = random.uniform(-1.2, 1.2, (rows, inputs)).astype(np.float32)
    values = (stored * scale).reshape(flat)
    check(
        core, net, data, (np.rint(data / 0.01) * 0.01 if is_quantized else data) @ (values.T if is_turned else values)
    )


@pytest.mark.parametrize("kind", ["nf4", "f4e2m1", "u2"])
def test_other_types_of_few_bits(core, kind):
    if not hasattr(Type, kind) or (kind == "u2" and RELEASE < (2026, 0)):
        pytest.skip(f"OpenVINO before 2026 has no weights of {kind}")
    stored = opset1.constant(np.random.default_rng(3).integers(0, 2, (8, 9)).astype(np.float32), getattr(Type, kind))
    factor = opset1.multiply(opset1.convert(stored, "f32"), const(np.linspace(1, 2, 8)[:, None]))
    x, data = parameter([12, 9]), np.random.default_rng(0).uniform(-1.2, 1.2, (12, 9)).astype(np.float32)
    values = stored.get_data(dtype=np.float32) * np.linspace(1, 2, 8)[:, None]
    check(core, model(opset1.matmul(x, factor, False, True), x), data, data @ values.T)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("is_quantized", [True, False])
def test_floats_of_eight_bits(core, kind, is_quantized, form, tmp_path):
    """No kernel reads them. Stock restores them in layers of its own: in bf16, with several streams, most compilations leave out
    the scales.
    """
    random, x = np.random.default_rng(3), parameter([-1, -1, 64])
    stored = opset1.constant(random.integers(-9, 10, (32, 64)).astype(np.float32), getattr(Type, kind))
    scale = random.uniform(0.01, 0.02, (32, 1)).astype(np.float32)
    weights = opset1.multiply(opset1.convert(stored, "f32"), const(scale))
    net = model(opset1.matmul(quantized(x, -1.28, 1.27) if is_quantized else x, weights, False, True), x)
    data = random.uniform(-1.2, 1.2, (1, 5, 64)).astype(np.float32)
    expected = data @ (stored.get_data(dtype=np.float32) * scale).T
    for precision in float_types(core):
        hints = {"INFERENCE_PRECISION_HINT": precision, "NUM_STREAMS": "2"}
        for _ in range(4):
            found = compiled_in(form, net, core, tmp_path, **hints)(data)[0]
            assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["f4e2m1", "f8e4m3"])
def test_scales_that_are_powers_of_two_in_eight_bits(core, kind, form, tmp_path):
    """As NNCF writes MXFP4 and MXFP8. In memory, with data that is quantized, compiling threw: stock does not."""
    random, x = np.random.default_rng(3), parameter([-1, 64])
    stored = opset1.constant(random.integers(-2, 3, (16, 2, 32)).astype(np.float32), getattr(Type, kind))
    scale = opset1.constant(2.0 ** random.integers(-3, 0, (16, 2, 1)).astype(np.float32), Type.f8e8m0)
    factor = opset1.multiply(opset1.convert(stored, "f32"), opset1.convert(scale, "f32"))
    weights = opset1.reshape(factor, const([16, 64], "i64"), False)
    net = model(opset1.matmul(quantized(x, -1.28, 1.27), weights, False, True), x)
    data = random.uniform(-1.2, 1.2, (5, 64)).astype(np.float32)
    values = (stored.get_data(dtype=np.float32) * scale.get_data(dtype=np.float32)).reshape(16, 64)
    found = compiled_in(form, net, core, tmp_path)(data)[0]
    assert np.abs(found - (np.rint(data / 0.01) * 0.01) @ values.T).max() < 1e-4


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["i8", "u4"])
@pytest.mark.parametrize("is_quantized", [True, False])
@pytest.mark.parametrize(("rows", "inputs"), [(-1, 36), (-1, 32), (5, 20)])
def test_inputs_that_fill_no_whole_blocks(core, kind, rows, inputs, is_quantized, form, tmp_path):
    """With AMX and several streams, in bf16: many compilations read other memory for the rest, stock's as well. Before OpenVINO
    2025.2 the rest is scaled wrongly in f32, or, to 2026.0, throws.
    """
    random, x = np.random.default_rng(3), parameter([rows, inputs])
    stored, scale = random.integers(*KINDS.get(kind, (-127, 128)), (16, inputs)), random.uniform(0.01, 0.02, (16, 1))
    weights = opset1.multiply(opset1.convert(opset1.constant(stored, getattr(Type, kind)), "f32"), const(scale))
    outputs = [opset1.matmul(x, weights, False, True)]
    if is_quantized:  # elsewhere, else the model passes unchanged
        outputs.append(opset1.matmul(quantized(x, -1.28, 1.27), int8_weights([8, inputs]), False, True))
    data = random.uniform(-1.2, 1.2, (5, inputs)).astype(np.float32)
    expected = data @ (stored * scale).T
    for precision in float_types(core):
        hints = {"INFERENCE_PRECISION_HINT": precision, "NUM_STREAMS": "2"}
        for _ in range(4):
            compiled = compiled_in(form, model(outputs, x), core, tmp_path, **hints)
            found = [compiled(data)[0] for _ in range(2)][-1]
            assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


_MOVES = {
    "channels first": lambda value: opset1.transpose(value, const([0, 3, 1, 2], "i64")),
    "channels last": lambda value: opset1.transpose(value, const([0, 2, 3, 1], "i64")),
    "turned": lambda value: opset1.transpose(value, const([0, 3, 2, 1], "i64")),
    "apart": lambda value: opset1.relu(opset1.transpose(value, const([0, 3, 1, 2], "i64"))),
    "each pixel": lambda value: opset1.reshape(value, const([-1, 64, 1, 1], "i64"), False),
    "flat": lambda value: opset1.reshape(value, const([0, 16, -1], "i64"), True),
    "": lambda value: value,
}


@pytest.mark.parametrize("before", ["channels first", "turned", "apart", "each pixel"])
@pytest.mark.parametrize("after", ["channels last", "turned", "flat", ""])
@pytest.mark.parametrize("rows", [4, -1])
def test_pointwise_convolutions(core, before, after, rows):
    """OpenVINO 2026 makes MatMuls of those beside a Transpose of any order and beside a Reshape: other numbers, or the process
    ends. Of others it restores the weights in a layer of its own, and for several streams reads other numbers in most compilations.
    """
    random, x = np.random.default_rng(3), parameter([2, rows, 5, 64])
    stored, scale = random.integers(-127, 128, (16, 64, 1, 1)), random.uniform(0.01, 0.02, (16, 1, 1, 1))

    def network(weights):
        layer = opset1.convolution(_MOVES[before](x), weights, [1, 1], [0, 0], [0, 0], [1, 1])
        layer = opset1.add(layer, const(np.linspace(-1, 1, 16).reshape(1, 16, 1, 1)))
        return model(opset1.relu(_MOVES[after](layer)), x)

    data = random.uniform(-1, 1, (2, 4, 5, 64)).astype(np.float32)
    expected = core.compile_model(network(const(stored * scale)), "CPU", EXACT)(data)[0]
    compressed = opset1.multiply(opset1.convert(opset1.constant(stored, Type.i8), "f32"), const(scale))
    for _ in range(4):
        compiled = ovlpt.compile_model(network(compressed), core=core, properties={**EXACT, "NUM_STREAMS": "2"})
        found = [compiled(data)[0] for _ in range(2)][-1]
        assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


@pytest.mark.parametrize("case", ["one column", "weights first", "vector", "scales by rows", "turned data"])
@pytest.mark.parametrize("kind", ["i8", "u4"])
def test_products_that_the_plugin_restores_the_weights_of(core, case, kind):
    """For several streams stock reads other numbers in most compilations."""
    random, rows, columns = np.random.default_rng(3), 96, 1 if case == "one column" else 16
    shapes = {"weights first": [rows, -1], "vector": [rows], "turned data": [-1, rows, 4]}
    x = parameter(shapes.get(case, [-1, rows]))
    stored = random.integers(*KINDS.get(kind, (-127, 128)), (columns, rows))
    scale = random.uniform(0.01, 0.02, (1, rows) if case == "scales by rows" else (columns, 1))
    weights = opset1.multiply(opset1.convert(opset1.constant(stored, getattr(Type, kind)), "f32"), const(scale))
    data = random.uniform(-1, 1, [5 if size == -1 else size for size in shapes.get(case, [-1, rows])]).astype(
        np.float32
    )
    turned = data.swapaxes(-1, -2) if case == "turned data" else data
    if case == "weights first":
        product, expected = opset1.matmul(weights, x, False, False), stored * scale @ data
    else:
        product, expected = opset1.matmul(x, weights, case == "turned data", True), turned @ (stored * scale).T
    for _ in range(4):
        compiled = ovlpt.compile_model(model(product, x), core=core, properties={**EXACT, "NUM_STREAMS": "2"})
        found = [compiled(data)[0] for _ in range(2)][-1]
        assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


@pytest.mark.parametrize("inputs", [64, 96])
def test_whole_blocks_stay_compressed(core, inputs):
    x = parameter([-1, inputs])
    net = model(opset1.matmul(x, int8_weights([8, inputs]), False, True), x)
    (product,) = (node for node in ovlpt.transform(net, core=core).get_ops() if node.get_type_name() == "MatMul")
    assert product.input_value(1).get_node().get_type_name() == "Multiply"
