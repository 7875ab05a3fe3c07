"""Runs cases on Caffe2's Int8 operators: ``run_caffe2.py DIRECTORY`` (Python 3.8, torch==1.4.0, numpy<1.24).

DIRECTORY holds NAME.npz: the case's arrays (NCHW, OIHW), NAME.scale and NAME.zero_point, and ``case`` (JSON:
operator, options). Writes NAME.out.npy (NCHW), or NAME.error where Caffe2 refuses.
"""

import glob
import json
import os
import sys

import numpy as np

for alias in ("str", "bool", "int", "float", "object"):
    if alias not in np.__dict__:
        setattr(np, alias, getattr(__import__("builtins"), alias))

from caffe2.python import core, workspace  # noqa: E402


def fill(name, array, scale, zero_point):
    wide = array.dtype == np.int32
    values = [int(value) for value in array.ravel()] if wide else array.tobytes()
    kind = "Int8GivenIntTensorFill" if wide else "Int8GivenTensorFill"
    shape = [int(size) for size in array.shape]
    workspace.RunOperatorOnce(
        core.CreateOperator(
            kind, [], [name], values=values, shape=shape, Y_scale=float(scale), Y_zero_point=int(zero_point)
        )
    )


def run(operator, options, z):  # noqa: C901, one branch for each operator
    def put(name, axes=None):
        array = z[name]
        if axes is None and array.ndim == 4:
            axes = (0, 2, 3, 1)
        fill(
            name,
            np.ascontiguousarray(array.transpose(axes) if axes else array),
            z[name + ".scale"],
            z[name + ".zero_point"],
        )
        return name

    result = {}
    if "output.scale" in z:
        result = {"Y_scale": float(z["output.scale"]), "Y_zero_point": int(z["output.zero_point"])}
    layout = {"order": "NHWC"}
    outputs = ["Y"]
    window = dict(
        layout,
        kernel=options.get("kernel", [1])[0],
        stride=options.get("strides", [1])[0],
        pad=options.get("pads_begin", [0])[0],
    )
    if operator in ("Convolution", "Deconvolution", "InnerProduct"):
        fill("bias", z["bias"], np.float32(z["x.scale"] * z["w.scale"]), 0)
        window["kernel"] = int(z["w"].shape[-1])
    if operator == "Convolution":
        kind, inputs = "Int8Conv", [put("x"), put("w", (0, 2, 3, 1)), "bias"]
        arguments = dict(window, group=options.get("groups", 1))
    elif operator == "Deconvolution":
        kind, inputs, arguments = "Int8ConvTranspose", [put("x"), put("w", (0, 2, 3, 1)), "bias"], window
    elif operator == "InnerProduct":
        kind, inputs, arguments = "Int8FC", [put("x"), put("w"), "bias"], {}
    elif operator == "Quantize":
        workspace.FeedBlob("x", z["x"])
        kind, inputs, arguments = "Int8Quantize", ["x"], {}
    elif operator == "Dequantize":
        fill("x", z["x"].transpose(0, 2, 3, 1), z["input.scale"], z["input.zero_point"])
        kind, inputs, arguments = "Int8Dequantize", ["x"], {}
    elif operator == "EltwiseSum":
        kind, inputs, arguments = "Int8Add", [put("a"), put("b")], {}
    elif operator in ("AveragePool", "MaxPool"):
        kind, inputs, arguments = "Int8" + operator, [put("x")], window
        if operator == "MaxPool":
            result = {"Y_scale": float(z["x.scale"]), "Y_zero_point": int(z["x.zero_point"])}
    elif operator == "LeakyReLU":
        kind, inputs, arguments = "Int8LeakyRelu", [put("x")], {"alpha": options["alpha"]}
    elif operator == "Concat":
        kind, inputs, arguments = "Int8Concat", [put("a"), put("b")], {"axis": 3}
        outputs = ["Y", "split"]
    else:
        kind, inputs, arguments = (
            {"ReLU": "Int8Relu", "Sigmoid": "Int8Sigmoid", "Softmax": "Int8Softmax"}[operator],
            [put("x")],
            {},
        )
    if kind == "Int8Dequantize":
        result = {}
    workspace.RunOperatorOnce(core.CreateOperator(kind, inputs, outputs, **dict(arguments, **result)))
    y = workspace.FetchBlob("Y") if operator == "Dequantize" else workspace.FetchInt8Blob("Y").data
    return y.transpose(0, 3, 1, 2) if y.ndim == 4 and operator != "Quantize" else y


def main(directory):
    for path in sorted(glob.glob(os.path.join(directory, "*.npz"))):
        z = dict(np.load(path))
        case = json.loads(str(z["case"]))
        try:
            np.save(path[:-4] + ".out.npy", run(case["operator"], case["options"], z))
        except Exception as error:
            with open(path[:-4] + ".error", "w") as file:
                file.write(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
