"""Networks as ONNX files with QuantizeLinear and DequantizeLinear, read by OpenVINO's front end.

ONNX Runtime's quantizer puts the pairs around the operations and stores the weights as integers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from tools.ir import save_ir
from tools.zoo.alive import CALIBRATION, Sample, report
from tools.zoo.overflow_fix import save_quantized
from tools.zoo.signals import smooth

OPSET = 17


class Graph:
    """An ONNX graph that grows node by node; every method returns the name of its output."""

    def __init__(self, image: tuple[int, ...]):
        self.image = image
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(2)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def constant(self, values: np.ndarray) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def convolution(self, data: str, inputs: int, outputs: int, kernel: int, stride: int = 1, gain: float = 1.0) -> str:
        weights = self._random.standard_normal((outputs, inputs, kernel, kernel))
        weights *= gain * np.sqrt(2 / (inputs * kernel * kernel))
        return self.node(
            "Conv", data, self.constant(weights), self.constant(self._random.uniform(-0.2, 0.2, outputs)),
            kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4,
        )  # fmt: skip

    def model(self, output: str, classes: int) -> onnx.ModelProto:
        ends = (("image", (1, *self.image)), (output, (1, classes)))
        image, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends)
        graph = helper.make_graph(self._nodes, "network", [image], [result], self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        return model


def resnet18(classes: int = 100, size: int = 224) -> tuple[onnx.ModelProto, tuple[int, ...]]:
    """ResNet-18 with its normalizations folded, and the shape of its image."""
    graph = Graph((3, size, size))
    x = graph.node("Relu", graph.convolution("image", 3, 64, 7, 2))
    x = graph.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inputs = 64
    for outputs in (64, 128, 256, 512):
        for index in range(2):
            stride = 1 if index or outputs == 64 else 2
            y = graph.node("Relu", graph.convolution(x, inputs, outputs, 3, stride))
            y = graph.convolution(y, outputs, outputs, 3, gain=0.5)  # what is added must not grow block by block
            skip = x if stride == 1 else graph.convolution(x, inputs, outputs, 1, stride, gain=0.7)
            x, inputs = graph.node("Relu", graph.node("Add", y, skip)), outputs
    x = graph.node("Flatten", graph.node("GlobalAveragePool", x))
    weights = np.random.default_rng(3).standard_normal((inputs, classes)) / np.sqrt(inputs)
    return graph.model(
        graph.node("Gemm", x, graph.constant(weights), graph.constant(np.zeros(classes))), classes
    ), graph.image


class Reader(CalibrationDataReader):
    def __init__(self, samples: list[Sample]):
        self._samples = iter(samples)

    def get_next(self) -> Sample | None:
        return next(self._samples, None)


SETTINGS: dict[str, dict[str, object]] = {
    "resnet18_qdq": {"weight_type": QuantType.QInt8, "per_channel": True},
    "resnet18_u8_weights": {"weight_type": QuantType.QUInt8, "extra_options": {"WeightSymmetric": True}},
}


def build(name: str, settings: Mapping[str, object], folder: Path, overflow_fix: bool = False, size: int = 224) -> str:
    """Write ``folder/name.xml`` (quantized) and ``folder/name_float.xml``; return a line about them."""
    network, shape = resnet18(size=size)
    rng = np.random.default_rng(0)
    samples = [{"image": smooth(rng, shape)} for _ in range(CALIBRATION)]
    logging.getLogger().setLevel(logging.ERROR)  # advice on preparing the model, which has nothing to prepare
    with TemporaryDirectory() as scratch:
        before, after = Path(scratch) / "before.onnx", Path(scratch) / "after.onnx"
        onnx.save(network, before)
        quantize_static(
            str(before),
            str(after),
            Reader(samples),
            QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            reduce_range=overflow_fix,
            **settings,
        )
        model, quantized = ov.convert_model(before), ov.convert_model(after)
        line = report(name, model, quantized, samples[:4])
        save_ir(model, folder / f"{name}_float.xml")
        save_quantized(quantized, folder / f"{name}.xml", overflow_fix)
    return line
