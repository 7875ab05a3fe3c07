"""A case as an ONNX model, run by ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from ovlpt.reference import Quantization
from tools.quantized_operators.cases import Case

TYPES = {
    "float32": TensorProto.FLOAT, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8,
    "int64": TensorProto.INT64,
}  # fmt: skip
CONTRIB = "com.microsoft"


def run(case: Case) -> np.ndarray:
    """The result of ONNX Runtime's CPU provider, with all graph optimizations it does by default."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(_model(case), options, providers=["CPUExecutionProvider"])
    feed = {name: case.arrays[name] for name in (value.name for value in session.get_inputs())}
    return session.run(None, feed)[0]


def _model(case: Case) -> bytes:  # noqa: C901, one branch for each operator
    q, o, constants = case.quantizations, case.options, {}

    def parameters(name: str, quantization: Quantization) -> list[str]:
        constants[f"{name}_scale"] = quantization.scale
        zero_point = np.broadcast_to(quantization.zero_point, quantization.scale.shape)
        constants[f"{name}_zero"] = zero_point.astype(quantization.dtype)
        return [f"{name}_scale", f"{name}_zero"]

    def node(kind: str, *inputs: str, domain: str = "", output: str = "y", **attributes):
        return helper.make_node(kind, list(inputs), [output], domain=domain, **attributes)

    quantized = {name: [name, *parameters(name, q[name])] for name in case.arrays if name in q}
    out = parameters("y", q["output"]) if "output" in q else []
    match case.operator:
        case "Convolution":
            window = {name: o[name] for name in ("strides", "dilations") if name in o} | {"group": o.get("groups", 1)}
            if "pads_begin" in o:
                window["pads"] = [*o["pads_begin"], *o["pads_end"]]
            constants |= {name: case.arrays[name] for name in ("w", "bias") if name in case.arrays}
            bias = ["bias"] if "bias" in constants else []
            nodes = [node("QLinearConv", *quantized["x"], *quantized["w"], *out, *bias, **window)]
        case "InnerProduct":
            constants |= {"w": np.ascontiguousarray(case.arrays["w"].T), "bias": case.arrays["bias"]}
            nodes = [node("QGemm", *quantized["x"], *quantized["w"], "bias", *out, domain=CONTRIB, alpha=1.0)]
        case "Quantize":
            nodes = [node("QuantizeLinear", "x", *out, axis=q["output"].axis)]
        case "Dequantize":
            nodes = [node("DequantizeLinear", "x", *parameters("x", q["input"]), axis=q["input"].axis)]
        case "Requantize":
            nodes = [
                node("DequantizeLinear", *quantized["x"], output="real"),
                node("QuantizeLinear", "real", *out),
            ]
        case "ReLU":
            nodes = [
                node("DequantizeLinear", *quantized["x"], output="real"),
                node("Relu", "real", output="positive"),
                node("QuantizeLinear", "positive", *out),
            ]
        case "EltwiseSum":
            nodes = [node("QLinearAdd", *quantized["a"], *quantized["b"], *out, domain=CONTRIB)]
        case "BiasAdd":
            constants["bias"] = case.arrays["bias"].reshape(-1, 1, 1)
            nodes = [node("QLinearAdd", *quantized["x"], *quantized["bias"], *out, domain=CONTRIB)]
        case "AveragePool":
            pads = [*o.get("pads_begin", [0, 0]), *o.get("pads_end", [0, 0])]
            nodes = [
                node(
                    "QLinearAveragePool", *quantized["x"], *out, domain=CONTRIB, kernel_shape=o["kernel"],
                    pads=pads, strides=o["strides"], count_include_pad=int(not o["exclude_pad"]),
                )
            ]  # fmt: skip
        case "Mean":
            nodes = [node("QLinearGlobalAveragePool", *quantized["x"], *out, domain=CONTRIB, channels_last=0)]
        case "LeakyReLU":
            nodes = [node("QLinearLeakyRelu", *quantized["x"], *out, domain=CONTRIB, alpha=o["alpha"])]
        case "Sigmoid":
            nodes = [node("QLinearSigmoid", *quantized["x"], *out, domain=CONTRIB)]
        case "Softmax":
            nodes = [node("QLinearSoftmax", *quantized["x"], *out, domain=CONTRIB, axis=-1, opset=13)]
        case "Concat":
            nodes = [node("QLinearConcat", *out, *quantized["a"], *quantized["b"], domain=CONTRIB, axis=1)]
        case "MaxPool":
            nodes = [node("MaxPool", "x", kernel_shape=o["kernel"], strides=o["strides"])]
        case "ArgMax":
            nodes = [node("ArgMax", "x", axis=1, keepdims=0)]
    result = {"Dequantize": "float32", "ArgMax": "int64"}.get(case.operator) or str((q.get("output") or q["x"]).dtype)
    inputs = [
        helper.make_tensor_value_info(name, TYPES[str(array.dtype)], array.shape)
        for name, array in case.arrays.items()
        if name not in constants
    ]
    initializers = [numpy_helper.from_array(np.asarray(array, order="C"), name) for name, array in constants.items()]
    output = [helper.make_tensor_value_info("y", TYPES[result], None)]
    graph = helper.make_graph(nodes, case.operator, inputs, output, initializers)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


VERSION = f"onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}"
