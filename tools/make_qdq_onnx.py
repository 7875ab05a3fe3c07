"""Makes tests/data/qdq.onnx: a small network with QuantizeLinear and DequantizeLinear, for tests without the onnx package.

    python -m tools.make_qdq_onnx

Input and output have the names and the shapes of the Open Model Zoo's aclnet-int8, in whose place omz_converter takes it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FILE = Path(__file__).parents[1] / "tests" / "data" / "qdq.onnx"


def main() -> None:
    constants = {
        "scale": np.float32(0.02),
        "zero_point": np.uint8(128),
        # half of the range: no CPU saturates the sum of two products
        "weights": np.random.default_rng(0).integers(-63, 64, (8, 1, 1, 9)).astype(np.int8),
        "weights_scale": np.linspace(0.01, 0.02, 8, dtype=np.float32),
        "weights_zero_point": np.zeros(8, np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["result.1", "scale", "zero_point"], ["integers"]),
        helper.make_node("DequantizeLinear", ["integers", "scale", "zero_point"], ["data"]),
        helper.make_node("DequantizeLinear", ["weights", "weights_scale", "weights_zero_point"], ["kernel"], axis=0),
        helper.make_node("Conv", ["data", "kernel"], ["conv"], kernel_shape=[1, 9], strides=[1, 160], name="conv"),
        helper.make_node("Relu", ["conv"], ["486"]),
    ]
    ends = (("result.1", [1, 1, 1, 16000]), ("486", [1, 8, 1, 100]))
    first, last = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends)
    stored = [numpy_helper.from_array(np.asarray(values), name) for name, values in constants.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "network", [first], [last], stored), opset_imports=[helper.make_opsetid("", 13)]
    )
    model.ir_version = 8
    FILE.parent.mkdir(exist_ok=True)
    onnx.save(model, FILE)


if __name__ == "__main__":
    main()
