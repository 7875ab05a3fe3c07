import numpy as np
import pytest

from ovlpt import Params, PassConfig
from ovlpt.graph.dequantization import dequantization_above
from ovlpt.low_precision import CLEANUP
from ovlpt.openvino_api import opset1
from tests.conftest import Transformed
from tests.graphs import f32, fake_quantize, model, parameter, weights

UNCLEANED = PassConfig({kind.__name__ for kind in CLEANUP} | {"ReluTransformation"})


def test_a_constant_beside_a_zero_point_of_integers_in_native_only():
    """As in ONNX files. The native pass subtracts both, one after the other."""
    stored = opset1.fake_quantize(parameter((1, 4)), f32(-1), f32(1.55), f32(0), f32(255), 256)
    zero_point = opset1.convert(opset1.constant(np.array(100, np.uint8)), "f32")
    data = opset1.subtract(opset1.convert(opset1.convert(stored, "u8"), "f32"), zero_point)
    result = Transformed(model(opset1.add(opset1.multiply(data, f32(0.01)), f32(0.5))), Params(native_only=True))
    result.assert_numbers()
    chain = [node for node in result.after.get_ordered_ops() if node.get_type_name() != "Constant"]
    kinds = ["Parameter", "FakeQuantize", "Convert", "Subtract", "Subtract", "Multiply", "Result"]
    assert [node.get_type_name() for node in chain] == kinds
    assert [float(node.input_value(1).get_node().data) for node in chain[3:5]] == [100, -50]


def test_a_constant_beside_one_in_f32_that_scales_f16_in_native_only():
    """The native pass subtracts in the type of the data."""
    x, ends = parameter((12,), precision=np.float16), np.linspace(0.5, 1, 12).astype(np.float16)
    scaled = opset1.multiply(opset1.constant(ends), x)
    turned = opset1.multiply(scaled, opset1.constant(np.float16(-1)))
    result = Transformed(model(opset1.add(opset1.constant(ends), turned), scaled), Params(native_only=True))
    (subtract,) = (node for node in result.after.get_ops() if node.get_type_name() == "Subtract")
    assert subtract.get_output_element_type(0).get_type_name() == "f16"


def test_a_constant_branch_takes_the_dequantization():
    """Step 4: the data is read in low precision, and the constants become one."""
    added = np.linspace(-1, 1, 8).reshape(1, 8, 1, 1)
    result = Transformed(
        model(opset1.relu(opset1.add(fake_quantize(parameter((1, 8, 4, 4)), 0.0, 2.55), f32(added)))),
        pass_config=UNCLEANED,
    )
    kinds = [node.get_type_name() for node in result.after.get_ordered_ops()]
    assert "Add" not in kinds
    (subtract,) = (node for node in result.after.get_ops() if node.get_type_name() == "Subtract")
    np.testing.assert_allclose(subtract.input_value(1).get_node().data, -added / 0.01, rtol=1e-5)
    result.assert_numbers()


def test_the_formula_of_two_branches():
    """``scale1' = scale1 / scale2``, ``shift1' = shift1 + scale2 * shift2 / scale1``, by channel."""
    steps = np.linspace(1, 2, 8).reshape(1, 8, 1, 1)
    ends = {"one": (-0.5 * steps, 2.05 * steps), "two": (-1.0 * steps[:, ::-1], 1.55 * steps[:, ::-1])}
    quantized = {name: fake_quantize(parameter((1, 8, 4, 4), name), *each, name=name) for name, each in ends.items()}
    pooled = opset1.max_pool(quantized["two"], [1, 1], [1, 1], [1, 1], [3, 3])  # so that the other branch is full
    result = Transformed(model(opset1.relu(opset1.add(quantized["one"], pooled))), pass_config=UNCLEANED)
    (add,) = (node for node in result.after.get_ops() if node.get_type_name() == "Add")
    scale = {name: (high - low) / 255 for name, (low, high) in ends.items()}
    shift = {name: -low / scale[name] for name, (low, _) in ends.items()}
    full = dequantization_above(add, 0)
    np.testing.assert_allclose(full.scale, scale["one"] / scale["two"], rtol=1e-5)
    np.testing.assert_allclose(full.zero_point, shift["one"] + scale["two"] * shift["two"] / scale["one"], rtol=1e-5)
    after = dequantization_above(next(node for node in result.after.get_ops() if node.get_type_name() == "Relu"), 0)
    assert after.zero_point is None
    np.testing.assert_allclose(after.scale, scale["two"], rtol=1e-5)
    result.assert_numbers()


def test_a_bias_of_a_vector_joins_the_quantization_after_it():
    """The only axis of a vector is that of its channels."""
    product = opset1.matmul(fake_quantize(parameter((8,)), -0.4, 2.5, 255), weights([8, 8], 0.01), False, True)
    biased = opset1.add(product, f32(np.linspace(0.51, 1.03, 8)))
    result = Transformed(model(fake_quantize(biased, -1.53, 3.59)))
    kinds = [node.get_type_name() for node in result.after.get_ordered_ops() if node.get_type_name() != "Constant"]
    assert kinds == ["Parameter", "FakeQuantize", "MatMul", "FakeQuantize", "Result"]
    result.assert_numbers()


def scores():
    q, k = (fake_quantize(parameter((1, 2, 6, 8), name), -1.28, 1.27) for name in "qk")
    return opset1.matmul(q, k, False, True)


@pytest.mark.parametrize("hidden", [np.finfo(np.float32).min, -1e38])
def test_a_mask_of_numbers_that_overflow_in_parts_of_a_scale_stays(hidden):
    """The weights of a row that is hidden whole are equal; those of infinite numbers would be none."""
    rows = np.triu(np.full((6, 6), hidden, np.float32), 1)
    rows[5] = hidden
    net = model(opset1.softmax(opset1.add(scores(), f32(rows)), 3))
    result = Transformed(net)
    assert result.reasons("Add") == ["overflow"]
    result.assert_numbers()
    assert Transformed(net, Params(native_only=True)).transformed("Add")


def chosen(hidden: float):
    shown = opset1.greater(parameter((1, 1, 6, 6), "mask"), f32(0.5))
    return opset1.select(shown, f32(0), f32(hidden))


def test_a_mask_that_is_chosen_and_overflows_in_parts_of_a_scale():
    """The same rows, of a mask that the network is given."""
    stored = fake_quantize(scores(), -2.56, 2.54)
    net = model(opset1.softmax(opset1.add(stored, chosen(float(np.finfo(np.float32).min))), 3))
    assert Transformed(net).reasons("Add") == ["overflow"]


def test_a_mask_far_above_the_sum():
    """Through more operations than a stack is deep, each of which reads the one before it twice."""
    mask = parameter((1, 1, 6, 6), "mask")
    for _ in range(600):
        left, right = opset1.split(mask, opset1.constant(np.int64(3)), 2).outputs()
        mask = opset1.concat([right, left], 3)
    assert Transformed(model(opset1.softmax(opset1.add(fake_quantize(scores(), -2.56, 2.54), mask), 3))).transformed(
        "Add"
    )


@pytest.mark.parametrize("hidden", [5e5, 9e5])
def test_a_quantized_mask_does_not_round_away_what_it_shows(hidden):
    """``(mask - 1) * 5e5``: the zero point of the sum would be a number beside which f32 knows nothing of the scores."""
    mask = opset1.fake_quantize(parameter((1, 1, 1, 6), "mask"), f32(0), f32(1), f32(-hidden), f32(0), 256)
    net = model(opset1.softmax(opset1.add(scores(), mask), 3))
    result = Transformed(net)
    assert result.reasons("Add") == ["rounded_away"]
    result.assert_numbers()
    assert Transformed(net, Params(native_only=True)).transformed("Add")


def test_a_mask_of_a_small_number_is_added_in_low_precision():
    mask = opset1.fake_quantize(parameter((1, 1, 1, 6), "mask"), f32(0), f32(1), f32(-1000), f32(0), 256)
    result = Transformed(model(opset1.softmax(opset1.add(scores(), mask), 3)))
    assert result.transformed("Add")
    result.assert_numbers(1e-4)


def test_channels_that_hold_nothing_do_not_keep_a_sum_in_float():
    """Their scales are tiny, as a quantizer leaves them where all weights of a channel are zero."""
    steps = np.array([1, 1, 1e-20, 1]).reshape(1, 4, 1, 1)
    ends = {"one": steps, "two": np.ones((1, 4, 1, 1))}
    one, two = (fake_quantize(parameter((1, 4, 3, 3), name), -each, 1.55 * each) for name, each in ends.items())
    result = Transformed(model(opset1.relu(opset1.add(one, opset1.max_pool(two, [1, 1], [1, 1], [1, 1], [3, 3])))))
    assert result.transformed("Add")
    result.assert_numbers()
