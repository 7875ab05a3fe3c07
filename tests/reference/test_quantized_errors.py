import numpy as np
import pytest

from ovlpt import reference
from ovlpt.reference import Quantization
from ovlpt.trace import InputError

U8, I8 = Quantization(0.1, 128, "u8"), Quantization(0.1, 0, "i8")
X, Y = np.zeros((1, 2, 3, 3), np.uint8), np.zeros((1, 2, 3, 3), np.int8)
WEIGHTS, BIAS = np.zeros((2, 2, 1, 1), np.int8), np.zeros(2, np.int32)
PROBABILITY = Quantization(1 / 256, 0, "u8")


def weighted(function, x, x_quantization, w_quantization, method, output=None, **options):
    w = WEIGHTS.astype(w_quantization.dtype)
    return function(x, x_quantization, w, w_quantization, BIAS, output or x_quantization, method=method, **options)


@pytest.mark.parametrize(
    "operator, method, call",
    [
        ("BiasAdd", "tflite", lambda m: reference.bias_add(X, U8, X[0, :, 0, 0], U8, U8, method=m)),
        ("BiasAdd", "caffe2", lambda m: reference.bias_add(X, U8, X[0, :, 0, 0], U8, U8, method=m)),
        ("ResizeBilinear", "onnx", lambda m: reference.resize_bilinear(X, U8, (6, 6), method=m)),
        ("ResizeBilinear", "caffe2", lambda m: reference.resize_bilinear(X, U8, (6, 6), method=m)),
        ("deconvolution", "onnx", lambda m: weighted(reference.deconvolution, Y, I8, I8, m)),
        ("ReLU", "torch-fbgemm", lambda m: reference.relu(X, U8, U8, method=m)),
        ("Softmax", "openvino", lambda m: reference.softmax(X, U8, PROBABILITY, method=m)),
        ("Quantize", "openvino", lambda m: reference.quantize(np.zeros(3), U8, m)),
        ("FakeQuantize", "onnx", lambda m: reference.fake_quantized(np.zeros(3), 1, U8, method=m)),
        ("grouped convolution", "tflite-2.5", lambda m: weighted(
            reference.convolution, np.zeros((1, 4, 3, 3), np.int8), I8, I8, m, groups=2)),
        ("normal convolution with u8 weights per channel", "tflite", lambda m: weighted(
            reference.convolution, X, U8, Quantization([0.1, 0.2], 0, "u8", 0), m)),
    ],
)  # fmt: skip
def test_an_empty_cell_says_that_the_framework_has_no_such_operator(operator, method, call):
    with pytest.raises(InputError, match=f"has no such quantized operator: {operator}") as error:
        call(method)
    assert "use " in str(error.value)


@pytest.mark.parametrize(
    "culprit, call",
    [
        ("'tensorrt' is unknown", lambda: reference.quantize(np.zeros(2), U8, "tensorrt")),
        ("has no i16", lambda: reference.quantize(np.zeros(2), Quantization(0.1, 0, "i16"), "caffe2")),
        ("no scale per channel", lambda: reference.quantize(X, Quantization([0.1, 0.2]), "caffe2")),
        ("one scale per tensor", lambda: reference.relu(X, Quantization([0.1, 0.2]), U8)),
        ("does not take i8 and u8", lambda: reference.eltwise_sum(X, U8, Y, I8, U8)),
        ("does not take i8", lambda: reference.eltwise_sum(Y, I8, Y, I8, I8, method="caffe2")),
        ("u8 tensors meet i8 weights", lambda: weighted(reference.convolution, X, U8, I8, "tflite")),
        ("below the output scale", lambda: weighted(
            reference.convolution, X, Quantization(1, 0), Quantization(2, 0), "caffe2", U8)),
        ("described as i8", lambda: reference.requantize(X, I8, I8)),
        ("keeps the quantization", lambda: reference.average_pool(X, U8, Quantization(0.2), [2, 2])),
        ("does not count padding", lambda: reference.average_pool(X, U8, U8, [2, 2], exclude_pad=False)),
        ("keeps the quantization", lambda: reference.concat([Y, Y], [I8, Quantization(0.2, 0, "i8")], I8)),
        ("keeps the quantization", lambda: reference.concat([X], [U8], Quantization(0.2), method="caffe2")),
        ("one per input", lambda: reference.concat([X, X], [U8], U8)),
        ("1/256", lambda: reference.softmax(X, U8, U8)),
        ("1/256", lambda: reference.sigmoid(X, U8, U8, method="caffe2")),
        ("no upper bound", lambda: reference.relu(X, U8, U8, upper=6, method="caffe2")),
        (r"give \[N, K\]", lambda: reference.inner_product(X, U8, WEIGHTS, I8, None, U8)),
        ("positive and finite", lambda: Quantization(0)),
        ("outside u8", lambda: Quantization(1, 256)),
        ("'u4' is unknown", lambda: Quantization(1, 0, "u4")),
        ("axis 1, and the tensor has 1 axes", lambda: reference.quantize(np.zeros(2), Quantization([0.1, 0.2]))),
        ("axis 1, and the tensor has 0 axes", lambda: reference.dequantize(np.uint8(3), Quantization([0.1, 0.2]))),
        ("axis -1", lambda: reference.quantize(np.zeros((2, 2)), Quantization([0.1, 0.2], 0, "u8", -1))),
        ("several dimensions", lambda: Quantization([[1, 2], [3, 4]])),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_with_culprit_and_remedy(culprit, call):
    with pytest.raises(InputError, match=culprit) as error:
        call()
    assert str(error.value).endswith(".")
    assert ": " in str(error.value)


@pytest.mark.parametrize("method", ["tflite", "onnx", "torch-fbgemm", "caffe2"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 2, 1, 3, 1)])
@pytest.mark.parametrize("scale", [0.5, [0.5]], ids=["number", "list of one"])
def test_tensors_of_any_rank_are_quantized(shape, scale, method):
    quantization, values = Quantization(scale, 3, "u8"), np.full(shape, 1.5, np.float32)
    stored = reference.quantize(values, quantization, method)
    assert stored.shape == shape
    assert (stored == 6).all()
    np.testing.assert_array_equal(reference.dequantize(stored, quantization, method), values)
    finer = reference.requantize(stored, Quantization(0.5, 3, "u8"), Quantization(0.25, 3, "u8"), method)
    assert finer.shape == shape
    assert (finer == 9).all()


def test_a_vector_with_a_scale_for_each_element():
    quantization = Quantization([0.5, 0.25], [1, 2], "u8", 0)
    stored = reference.quantize(np.array([1, 1], np.float32), quantization)
    assert stored.tolist() == [3, 6]
    assert reference.dequantize(stored, quantization).tolist() == [1, 1]
