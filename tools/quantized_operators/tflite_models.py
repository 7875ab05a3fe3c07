"""A case as a TFLite model, written with the schema that LiteRT's wheel carries."""

from __future__ import annotations

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from ovlpt.reference import Quantization
from tools.quantized_operators.cases import Case

TYPES = {
    "float32": schema.TensorType.FLOAT32, "int32": schema.TensorType.INT32, "int64": schema.TensorType.INT64,
    "int16": schema.TensorType.INT16, "int8": schema.TensorType.INT8, "uint8": schema.TensorType.UINT8,
}  # fmt: skip
CODE, VALID, SAME = schema.BuiltinOperator, schema.Padding.VALID, schema.Padding.SAME


class Model:
    """One operator; tensors NHWC."""

    def __init__(self) -> None:
        self.tensors: list = []
        self.buffers = [schema.BufferT()]
        self.inputs: list[int] = []

    def tensor(self, shape, dtype, quantization: Quantization | None = None, data=None, axis: int = 0) -> int:
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.type = (
            f"t{len(self.tensors)}",
            list(map(int, shape)),
            TYPES[str(np.dtype(dtype))],
        )
        tensor.buffer = 0
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data, dtype).tobytes(), np.uint8)
            tensor.buffer = len(self.buffers)
            self.buffers.append(buffer)
        if quantization is not None:
            parameters = schema.QuantizationParametersT()
            parameters.scale = np.atleast_1d(quantization.scale).tolist()
            zero_points = np.broadcast_to(quantization.zero_point, len(parameters.scale))
            parameters.zeroPoint = zero_points.tolist()
            # XNNPACK refuses another dimension than 0 where there is one scale
            parameters.quantizedDimension = axis if quantization.per_channel else 0
            tensor.quantization = parameters
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def input(self, array: np.ndarray, quantization: Quantization | None = None) -> int:
        self.inputs.append(self.tensor(array.shape, array.dtype, quantization, axis=array.ndim - 1))
        return self.inputs[-1]

    def serialize(self, code: int, inputs: list[int], output: int, options=None, version: int = 1) -> bytes:
        operator_code, operator = schema.OperatorCodeT(), schema.OperatorT()
        operator_code.builtinCode, operator_code.deprecatedBuiltinCode = code, min(code, 127)
        operator_code.version = version
        operator.opcodeIndex, operator.inputs, operator.outputs = 0, inputs, [output]
        if options is not None:
            operator.builtinOptions = options
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, type(options).__name__[:-1])
        graph, model = schema.SubGraphT(), schema.ModelT()
        graph.tensors, graph.inputs, graph.outputs = self.tensors, self.inputs, [output]
        graph.operators = [operator]
        model.version, model.operatorCodes, model.buffers, model.subgraphs = (
            3,
            [operator_code],
            self.buffers,
            [graph],
        )
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def channels_last(array: np.ndarray) -> np.ndarray:
    return np.moveaxis(array, 1, -1) if array.ndim == 4 else array


def options_of(name: str, **values):
    options = getattr(schema, f"{name}OptionsT")()
    for key, value in values.items():
        setattr(options, key, value)
    return options


def model_of(case: Case, expected_shape: tuple[int, ...]) -> tuple[bytes, list[np.ndarray]]:  # noqa: C901, one branch for each operator
    """The serialized model and its inputs (NHWC). ``expected_shape``: of the result, NCHW."""
    model, q, o = Model(), case.quantizations, case.options
    arrays = {name: channels_last(array) for name, array in case.arrays.items() if name not in ("w", "bias")}
    inputs = [model.input(array, q.get(name, q.get("input"))) for name, array in arrays.items()]
    shape = channels_last(np.empty(expected_shape, np.int8)).shape
    signed = (q.get("x") or q.get("output") or q.get("input")).precision == "i8"
    out = q.get("output") or q.get("x")

    def output(dtype=None, quantization=out):
        return model.tensor(shape, dtype or out.dtype, quantization, axis=len(shape) - 1)

    def finish(code, options=None, version=2 if signed else 1, extra=(), result=None):
        return model.serialize(code, [*inputs, *extra], output() if result is None else result, options, version), [
            *arrays.values()
        ]

    strides = dict(zip(("strideH", "strideW"), o.get("strides", (1, 1)), strict=True))
    match case.operator:
        case "Convolution" | "Deconvolution" | "InnerProduct":
            w, depthwise = (
                case.arrays["w"],
                o.get("groups", 1) == case.arrays["x"].shape[1] and o.get("groups", 1) > 1,
            )
            order = {"Deconvolution": (1, 2, 3, 0), "InnerProduct": (0, 1)}.get(
                case.operator, (1, 2, 3, 0) if depthwise else (0, 2, 3, 1)
            )
            axis = 3 if depthwise else 0
            weights = model.tensor(w.transpose(order).shape, w.dtype, q["w"], w.transpose(order), axis)
            bias = Quantization(np.atleast_1d(q["x"].scale * q["w"].scale), 0, "i16")
            bias = model.tensor(case.arrays["bias"].shape, np.int32, bias, case.arrays["bias"])
            if case.operator == "InnerProduct":
                version = 12 if q["w"].per_channel else 4 if signed else 1
                return finish(CODE.FULLY_CONNECTED, options_of("FullyConnected"), version, (weights, bias))
            if case.operator == "Deconvolution":
                size = model.tensor([4], np.int32, data=shape)
                operands = [size, weights, inputs[0], bias]
                options = options_of("TransposeConv", padding=VALID, **strides)
                return model.serialize(CODE.TRANSPOSE_CONV, operands, output(), options, 3), [*arrays.values()]
            dilation = dict(zip(("dilationHFactor", "dilationWFactor"), o.get("dilations", (1, 1)), strict=True))
            padding = SAME if "pads_begin" in o else VALID
            if depthwise:
                options = options_of(
                    "DepthwiseConv2D",
                    padding=padding,
                    depthMultiplier=len(w) // case.arrays["x"].shape[1],
                    **strides,
                    **dilation,
                )
                return finish(CODE.DEPTHWISE_CONV_2D, options, 3 if signed else 1, (weights, bias))
            options = options_of("Conv2D", padding=padding, **strides, **dilation)
            return finish(CODE.CONV_2D, options, 5 if "groups" in o else 3 if signed else 1, (weights, bias))
        case "Quantize":
            return finish(CODE.QUANTIZE, None, 1)
        case "Requantize":
            return finish(CODE.QUANTIZE, None, 2)
        case "Dequantize":
            version = {"i16": 3}.get(q["input"].precision, 5 if q["input"].per_channel else 2)
            return finish(CODE.DEQUANTIZE, None, version, result=output(np.float32, None))
        case "EltwiseSum":
            return finish(CODE.ADD, options_of("Add"))
        case "AveragePool" | "MaxPool":
            code = CODE.AVERAGE_POOL_2D if case.operator == "AveragePool" else CODE.MAX_POOL_2D
            height, width = o["kernel"]
            padding = SAME if "pads_begin" in o else VALID
            return finish(
                code, options_of("Pool2D", filterHeight=height, filterWidth=width, padding=padding, **strides)
            )
        case "Mean":
            axes = model.tensor([2], np.int32, data=[1, 2])
            return finish(CODE.MEAN, options_of("Reducer", keepDims=True), extra=(axes,))
        case "LeakyReLU":
            return finish(CODE.LEAKY_RELU, options_of("LeakyRelu", alpha=o["alpha"]))
        case "ReLU":
            return finish(CODE.RELU6 if "upper" in o else CODE.RELU)
        case "Sigmoid":
            return finish(CODE.LOGISTIC)
        case "Softmax":
            return finish(CODE.SOFTMAX, options_of("Softmax", beta=1.0))
        case "Concat":
            return finish(CODE.CONCATENATION, options_of("Concatenation", axis=3))
        case "ResizeBilinear":
            size = model.tensor([2], np.int32, data=o["size"])
            options = options_of(
                "ResizeBilinear", alignCorners=o["align_corners"], halfPixelCenters=o["half_pixel_centers"]
            )
            return finish(CODE.RESIZE_BILINEAR, options, 3, (size,))
        case "ArgMax":
            axis = model.tensor([], np.int32, data=1)
            options = options_of("ArgMax", outputType=schema.TensorType.INT64)
            return finish(CODE.ARG_MAX, options, extra=(axis,), result=output(np.int64, None))
    raise KeyError(case.operator)
