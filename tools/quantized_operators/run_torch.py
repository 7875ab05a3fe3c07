"""Runs cases on PyTorch's quantized operators: ``run_torch.py DIRECTORY ENGINE``, files as run_caffe2's."""

import glob
import json
import os
import sys
import warnings

import numpy as np
import torch

warnings.filterwarnings("ignore")


def run(operator, options, z):
    def put(name):
        array = torch.from_numpy(np.ascontiguousarray(z[name]))
        scale, zero_point = z[name + ".scale"], z[name + ".zero_point"]
        if scale.ndim:
            zeros = torch.zeros(scale.size, dtype=torch.int64)
            return torch._make_per_channel_quantized_tensor(array, torch.from_numpy(scale.astype(np.float64)), zeros, 0)
        return torch._make_per_tensor_quantized_tensor(array, float(scale), int(zero_point))

    out = (float(z["output.scale"]), int(z["output.zero_point"])) if "output.scale" in z else ()
    ops = torch.ops.quantized
    if operator in ("Convolution", "InnerProduct"):
        scale = z["x.scale"].astype(np.float64) * z["w.scale"]
        bias = torch.from_numpy((z["bias"] * scale).astype(np.float32))
        if operator == "InnerProduct":
            y = ops.linear(put("x"), ops.linear_prepack(put("w"), bias), *out)
        else:
            stride, groups = options.get("strides", [1, 1]), options.get("groups", 1)
            pads, dilation = options.get("pads_begin", [0, 0]), options.get("dilations", [1, 1])
            y = ops.conv2d(put("x"), ops.conv2d_prepack(put("w"), bias, stride, pads, dilation, groups), *out)
    elif operator == "Quantize":
        y = torch.quantize_per_tensor(torch.from_numpy(z["x"]), *out, torch.quint8)
    elif operator == "Dequantize":
        z = dict(z, **{"x.scale": z["input.scale"], "x.zero_point": z["input.zero_point"]})
        array = torch.from_numpy(z["x"])
        return (
            torch._make_per_tensor_quantized_tensor(array, float(z["x.scale"]), int(z["x.zero_point"]))
            .dequantize()
            .numpy()
        )
    elif operator == "EltwiseSum":
        y = ops.add(put("a"), put("b"), *out)
    elif operator == "AveragePool":
        y = torch.nn.functional.avg_pool2d(put("x"), options["kernel"], options["strides"])
    else:
        y = torch.nn.functional.max_pool2d(put("x"), options["kernel"], options["strides"])
    return y.int_repr().numpy()


def main(directory, engine):
    torch.backends.quantized.engine = engine
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
