"""Inputs that tell roundings apart: accumulators that sit on ties, zero points at both ends, multipliers on
both sides of 1.

An ordinary random accumulator cannot tell F2 from D2 (they differ in 0.7 of a million). So every weighted
case puts the accumulator where it wants it through the bias, ``bias = tie - convolution``, and one input
channel, whose weight is 1, steps through ±8 around the tie from one output position to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ovlpt.reference import Quantization

F32 = np.float32
EXPONENTS = (2, 0, -1, -3, -6, -10, -14, -18, -22)
# Caffe2 wants multipliers below 1
SKIPPED = {"caffe2": (2, 0), "torch": (-10, -14, -18, -22), "openvino": (-10, -14, -18, -22)}
# these take the bias as a float: short scales and small biases make it exact
FLOAT_BIAS = ("torch", "openvino")


@dataclass(eq=False)
class Case:
    """One operator and its inputs for one family of runtimes; tensors NCHW, weights OIHW (IOHW)."""

    family: str
    operator: str
    name: str
    arrays: dict[str, np.ndarray]
    quantizations: dict[str, Quantization]
    options: dict = field(default_factory=dict)


@dataclass
class Generator:
    """All cases of a family. ``size`` is "large" to measure, "small" to record."""

    family: str
    size: str = "large"
    seed: int = 7

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.large = self.size == "large"
        self.precisions = {"caffe2": ("u8",), "torch": ("u8",), "openvino": ("u8", "i8")}.get(self.family, ("u8", "i8"))
        self.repeats = 3 if self.large else 1
        # parameter sets of the operators that know only 256 inputs
        self.sets = (64 if self.family == "caffe2" else 32) if self.large else 1

    def __iter__(self) -> Iterator[Case]:
        yield from self.weighted()
        for index in range(12 if self.large else 4):
            yield from self.geometry(index)
        if self.family != "openvino":
            yield from self.quantize()
        for name in OPERATORS[self.family]:
            for precision in self.precisions:
                for repeat in range(8 if self.large else 2):
                    yield from getattr(self, name)(precision, repeat)

    # numbers

    def scale(self, low: float = 0.005, high: float = 0.2) -> np.float32:
        value = self.rng.uniform(low, high)
        return F32(short(value, 11) if self.family == "openvino" else value)

    def quantization(self, precision: str, repeat: int, scale: float | None = None) -> Quantization:
        """Zero points: the least integer, the greatest, then random ones."""
        low, high = (0, 255) if precision == "u8" else (-128, 127)
        zero_point = (low, high)[repeat] if repeat < 2 else int(self.rng.integers(low, high + 1))
        return Quantization(self.scale() if scale is None else scale, zero_point, precision)

    def integers(self, quantization: Quantization, *shape: int) -> np.ndarray:
        return self.rng.integers(quantization.low, quantization.high + 1, shape).astype(quantization.dtype)

    def case(self, operator: str, name: str, arrays: dict, quantizations: dict, **options) -> Case:
        return Case(self.family, operator, f"{operator} {name}", arrays, quantizations, options)

    # operators with weights

    def weighted(self) -> Iterator[Case]:
        for kind, x, w, granularity in weighted_kinds(self.family):
            for exponent in (*EXPONENTS, "ties") if self.large else (2, -6, -18, "ties"):
                for repeat in range(self.repeats):
                    for positions in (49, 1):
                        if positions == 1 and (kind in ("depthwise", "deconvolution") or self.family != "tflite"):
                            continue
                        if exponent in SKIPPED.get(self.family, ()):
                            continue
                        yield self.weighted_case(kind, x, w, granularity, exponent, repeat, positions)

    def weighted_case(
        self, kind: str, xp: str, wp: str, granularity: str, exponent: int | str, repeat: int, positions: int
    ) -> Case:
        rng, outputs = self.rng, (256 if self.large else 24) * (4 if positions == 1 else 1)
        x, output = self.quantization(xp, repeat), self.quantization(xp, (repeat + 1) % 3)
        if self.family == "openvino" and xp == "i8":
            # the plugin stores signed tensors only where the interval is symmetric
            x, output = Quantization(x.scale, 0, xp), Quantization(output.scale, 0, xp)
        scales = outputs if granularity == "channel" else 1
        if exponent == "ties":
            x, output = Quantization(0.5, x.zero_point, xp), Quantization(1, output.zero_point, xp)
            weight_scale = 2.0 ** -rng.integers(1, 15 if self.family not in FLOAT_BIAS else 8, scales)
        else:
            weight_scale = rng.uniform(0.5, 1, scales) * 2.0**exponent
            if self.family not in FLOAT_BIAS:
                weight_scale = weight_scale * output.scale / x.scale
        if self.family in FLOAT_BIAS:
            x = Quantization(2.0 ** -rng.integers(2, 8), x.zero_point, xp)
            # PyTorch multiplies the bias by a reciprocal: there only powers of two leave it as it is
            bits = 7 if self.family == "openvino" else 0
            weight_scale = short(weight_scale * output.scale / x.scale, bits) if exponent != "ties" else weight_scale
        weight_scale = weight_scale.astype(F32)
        zero = int(rng.integers(90, 160)) if wp == "u8" else 0
        w = Quantization(weight_scale if scales > 1 else weight_scale[0], zero, wp, 0)
        arrays, options = LAYOUTS[kind](self, x, w, outputs, positions)
        scales = np.broadcast_to(w.scale, outputs).astype(np.float64)  # numpy 1 keeps an array's float32
        multiplier = x.scale.astype(np.float64) * scales / output.scale.astype(np.float64)
        level = rng.integers(output.low - output.zero_point - 2, output.high - output.zero_point + 2, outputs)
        tie = np.rint((level + 0.5) / multiplier).astype(np.int64)
        bias = np.clip(tie, -(2**31) + 2**20, 2**31 - 2**20) - options.pop("sum")
        # bytes of a bias are what a recording spends most on
        arrays["bias"] = bias.astype(np.int32)
        if kind == "deconvolution":
            w = Quantization(w.scale, w.zero_point, wp, 1)
        operator = {"deconvolution": "Deconvolution", "inner": "InnerProduct"}.get(kind, "Convolution")
        name = f"{kind} {xp}{wp} per {granularity} 2^{exponent} {repeat}{' single' if positions == 1 else ''}"
        return self.case(operator, name, arrays, {"x": x, "w": w, "output": output}, **options)

    def geometry(self, index: int) -> Iterator[Case]:
        """Random images through strides, pads and dilations, with a small bias or none."""
        wp = {"onnx": "i8", "torch": "i8", "openvino": "i8"}.get(self.family, self.precisions[index % 2 - 1])
        xp = wp if self.family == "tflite" else self.precisions[index // 2 % len(self.precisions)]
        x, output = self.quantization(xp, index % 4), self.quantization(xp, 2, self.scale() * 8)
        if self.family == "openvino" and xp == "i8":
            x, output = Quantization(x.scale, 0, xp), Quantization(output.scale, 0, xp)
        zero = int(self.rng.integers(90, 160)) if wp == "u8" else 0
        channels = 16 if self.large else 4
        for kind in ("normal", "depthwise", "deconvolution"):
            if kind == "deconvolution" and self.family not in ("tflite", "caffe2"):
                continue
            per_channel = wp == "i8" and index % 3 > 0
            scale = short(self.rng.uniform(0.005, 0.02, channels if per_channel else 1), 8).astype(F32)
            axis = 1 if kind == "deconvolution" else 0
            w = Quantization(scale if per_channel else scale[0], zero, wp, axis)
            shape = (channels, 1, 3, 3) if kind == "depthwise" else (channels, channels, 3, 3)
            inputs = channels
            if kind == "depthwise" and index % 4 == 3 and self.family in ("tflite", "onnx"):
                inputs = channels // 2
            side = 13 if self.large else 7
            arrays = {"x": self.integers(x, 1, inputs, side, side)}
            arrays["w"] = self.weights(w, *shape)
            if index % 2 or self.family not in ("onnx", "openvino"):
                arrays["bias"] = self.rng.integers(-1000, 1000, channels).astype(np.int32)
            stride, dilation = 1 + index % 2, 1 + (index % 4 == 2 and self.family != "caffe2")
            options = {"strides": [stride] * 2}
            if kind == "deconvolution":
                operator = "Deconvolution"
            else:
                operator = "Convolution"
                options |= {"pads_begin": [dilation] * 2, "pads_end": [dilation] * 2}
                options |= {"dilations": [dilation] * 2} if dilation > 1 else {}
                options |= {"groups": inputs} if kind == "depthwise" else {}
            name = f"{kind} {xp}{wp} per {'channel' if per_channel else 'tensor'} geometry {index}"
            yield self.case(operator, name, arrays, {"x": x, "w": w, "output": output}, **options)

        if self.family == "openvino":
            w = Quantization(w.scale, w.zero_point, wp, 0)
            arrays = {"x": self.integers(x, 16, 48), "w": self.weights(w, channels, 48)}
            name = f"inner {xp}{wp} per {'channel' if w.per_channel else 'tensor'} geometry {index}"
            yield self.case("InnerProduct", name, arrays, {"x": x, "w": w, "output": output})

    def weights(self, w: Quantization, *shape: int) -> np.ndarray:
        low = max(w.low, -127)
        if self.family in ("torch", "openvino") or (self.family == "onnx" and w.precision == "i8"):
            # without VNNI these runtimes saturate the sum of two products in 16 bits
            return self.rng.integers(-64, 65, shape).astype(w.dtype)
        return self.rng.integers(low, w.high + 1, shape).astype(w.dtype)

    def steps(self, x: Quantization, positions: int) -> np.ndarray:
        """Values of the stepping channel: ±8 around the zero point, cut to the precision."""
        step = np.arange(positions) % 17 - 8 if positions > 1 else np.zeros(1, int)
        return np.clip(step + x.zero_point, x.low, x.high)

    # operators without

    def quantize(self) -> Iterator[Case]:
        precisions = ("i16", *self.precisions) if self.family == "tflite" else self.precisions
        for precision in precisions:
            for repeat in range(10 if self.large else 2):
                output = self.quantization(precision if precision != "i16" else "i8", repeat)
                if precision == "i16":
                    output = Quantization(output.scale, 0, "i16")
                if repeat == 3:
                    output = Quantization(0.5, output.zero_point, precision)
                count = 8000 if self.large else 200
                span = 140 if precision != "i16" else 33000
                ties = (self.rng.integers(-2 * span, 2 * span, count) + 0.5) * output.scale
                ties = np.concatenate([ties, self.rng.normal(size=count) * span / 2 * output.scale])
                x = np.concatenate([ties, np.array([0.0, -0.0, 1e6, -1e6])]).astype(F32)
                yield self.case("Quantize", f"{precision} {repeat}", {"x": x.reshape(1, 1, 1, -1)}, {"output": output})
            for repeat in range((400 if precision != "i16" else 4) if self.large else 2):
                output = self.quantization(precision if precision != "i16" else "i8", repeat)
                if precision == "i16":
                    output = Quantization(output.scale, 0, "i16")
                q = np.arange(output.low, output.high + 1).astype(output.dtype)
                q = q if precision != "i16" else q[:: 1 if self.large else 601]
                yield self.case("Dequantize", f"{precision} {repeat}", {"x": q.reshape(1, 1, 1, -1)}, {"input": output})
        if self.family in ("tflite", "onnx"):
            for repeat in range(4 if self.large else 1):
                output = Quantization(self.rng.uniform(0.005, 0.2, 8), 0, "i8")
                x = (self.rng.integers(-140, 140, (1, 8, 40, 40)) + 0.5) * output.aligned(4)[0]
                x = x if self.large else x[..., :6, :6]
                yield self.case("Quantize", f"per channel {repeat}", {"x": x.astype(F32)}, {"output": output})
                q = self.integers(output, 1, 8, *((60, 60) if self.large else (6, 6)))
                yield self.case("Dequantize", f"per channel {repeat}", {"x": q}, {"input": output})

    def requantize(self, precision: str, repeat: int) -> Iterator[Case]:
        x = self.quantization(precision, repeat)
        for index, ratio in enumerate((*self.rng.uniform(0.3, 3, max(self.sets, 2)), 0.5, 0.25, 300, 0.002)):
            output = self.quantization(precision, (repeat + index) % 4, x.scale / F32(ratio))
            arrays = {"x": np.arange(x.low, x.high + 1).astype(x.dtype).reshape(1, 1, 1, 256)}
            yield self.case("Requantize", f"{precision} {repeat} {index}", arrays, {"x": x, "output": output})

    def eltwise_sum(self, precision: str, repeat: int) -> Iterator[Case]:
        a, b = self.quantization(precision, repeat), self.quantization(precision, (repeat + 1) % 3)
        output = self.quantization(precision, (repeat + 2) % 3, max(a.scale, b.scale) * F32(self.rng.uniform(0.6, 3)))
        if repeat % 4 == 3:
            a, b, output = (Quantization(s, q.zero_point, precision) for s, q in ((0.5, a), (0.25, b), (1, output)))
        values = np.arange(a.low, a.high + 1).astype(a.dtype)
        pairs = np.stack(np.meshgrid(values, values, indexing="ij")).reshape(2, -1)
        if not self.large:
            pairs = pairs[:, self.rng.permutation(65536)[:1500]]
        x, y = pairs.reshape(2, 1, 1, -1, 1 if not self.large else 256)
        arrays = {"a": x[None], "b": y[None]}
        yield self.case("EltwiseSum", f"{precision} {repeat}", arrays, {"a": a, "b": b, "output": output})

    def bias_add(self, precision: str, repeat: int) -> Iterator[Case]:
        x, bias = self.quantization(precision, repeat), self.quantization(precision, (repeat + 1) % 3)
        output = self.quantization(precision, 2, max(x.scale, bias.scale) * F32(self.rng.uniform(0.6, 3)))
        if repeat % 4 == 3:
            x, bias, output = (
                Quantization(s, q.zero_point, precision) for s, q in ((0.5, x), (0.25, bias), (1, output))
            )
        side = 40 if self.large else 5
        arrays = {"x": self.integers(x, 1, 16, side, side), "bias": self.integers(bias, 16)}
        yield self.case("BiasAdd", f"{precision} {repeat}", arrays, {"x": x, "bias": bias, "output": output})

    def average_pool(self, precision: str, repeat: int) -> Iterator[Case]:
        x = self.quantization(precision, repeat)
        output = x
        if self.family in ("onnx", "caffe2", "openvino"):
            output = self.quantization(precision, 2, x.scale * F32(self.rng.uniform(0.7, 1.4) if repeat % 3 else 1))
        side, kernel = (24, 8) if self.large else (8, 3)
        kernel = (2, 3, 5, 7, kernel)[repeat % 5]
        pads = kernel // 2 if repeat % 2 and self.family in ("tflite", "onnx") else 0
        options = {
            "kernel": [kernel] * 2,
            "strides": [1 + repeat % 3] * 2 if self.family == "tflite" else [1, 1],
        }
        if pads:
            options |= same_pads(side, kernel, options["strides"][0]) if self.family == "tflite" else {}
            options |= {"pads_begin": [pads] * 2, "pads_end": [pads] * 2} if self.family == "onnx" else {}
        if self.family == "onnx":
            options["exclude_pad"] = bool(repeat // 2 % 2)
        arrays = {"x": self.integers(x, 1, 48 if self.large else 8, side, side)}
        yield self.case("AveragePool", f"{precision} {repeat}", arrays, {"x": x, "output": output}, **options)

    def mean(self, precision: str, repeat: int) -> Iterator[Case]:
        x = self.quantization(precision, repeat)
        output = self.quantization(precision, (repeat + 1) % 3, x.scale * F32(self.rng.uniform(0.7, 1.5)))
        side = (2, 4, 7, 8, 5)[repeat % 5]
        arrays = {"x": self.integers(x, 1, 2048 if self.large else 48, side, side)}
        yield self.case("Mean", f"{precision} {repeat}", arrays, {"x": x, "output": output})

    def leaky_relu(self, precision: str, repeat: int) -> Iterator[Case]:
        for index in range(self.sets):
            x = self.quantization(precision, (repeat + index) % 4)
            output = self.quantization(precision, (repeat + index + 1) % 4, x.scale * F32(self.rng.uniform(0.5, 2)))
            alpha = F32(self.rng.uniform(0.01, 0.5))
            if index == 3:
                x, output = (
                    Quantization(1, x.zero_point, precision),
                    Quantization(1, output.zero_point, precision),
                )
                alpha = F32(0.5)
            arrays = {"x": np.arange(x.low, x.high + 1).astype(x.dtype).reshape(1, 1, 1, 256)}
            name = f"{precision} {repeat} {index}"
            yield self.case("LeakyReLU", name, arrays, {"x": x, "output": output}, alpha=float(alpha))

    def relu(self, precision: str, repeat: int) -> Iterator[Case]:
        for index in range(max(self.sets, 2)):
            x = self.quantization(precision, (repeat + index) % 4)
            output = self.quantization(precision, (repeat + index + 1) % 4, x.scale * F32(self.rng.uniform(0.5, 2)))
            if index == 3:
                x, output = (
                    Quantization(0.5, x.zero_point, precision),
                    Quantization(1, output.zero_point, precision),
                )
            if self.family == "caffe2":
                output = x
            arrays = {"x": np.arange(x.low, x.high + 1).astype(x.dtype).reshape(1, 1, 1, 256)}
            options = {"upper": 6.0} if index % 2 and self.family == "tflite" else {}
            yield self.case("ReLU", f"{precision} {repeat} {index}", arrays, {"x": x, "output": output}, **options)

    def sigmoid(self, precision: str, repeat: int) -> Iterator[Case]:
        for index in range(self.sets):
            x = self.quantization(precision, (repeat + index) % 4, self.scale(0.01, 0.2))
            output = Quantization(F32(1 / 256), x.low, precision)
            arrays = {"x": np.arange(x.low, x.high + 1).astype(x.dtype).reshape(1, 1, 1, 256)}
            yield self.case("Sigmoid", f"{precision} {repeat} {index}", arrays, {"x": x, "output": output})

    def softmax(self, precision: str, repeat: int) -> Iterator[Case]:
        x = self.quantization(precision, repeat, self.scale(0.01, 0.2))
        output = Quantization(F32(1 / 256), x.low, precision)
        arrays = {
            "x": self.integers(x, 300 if self.large else 6, (10, 100, 37, 1000 if self.large else 64)[repeat % 4])
        }
        yield self.case("Softmax", f"{precision} {repeat}", arrays, {"x": x, "output": output})

    def concat(self, precision: str, repeat: int) -> Iterator[Case]:
        for index in range(self.sets):
            a, b = self.quantization(precision, (repeat + index) % 4), self.quantization(precision, 2)
            output = self.quantization(precision, (repeat + index + 2) % 4, max(a.scale, b.scale))
            if index % 3 == 0 or self.family == "caffe2" or (self.family == "tflite" and precision == "i8"):
                a = output
            if self.family == "caffe2" or (self.family == "tflite" and precision == "i8"):
                b = output
            values = np.arange(a.low, a.high + 1).astype(a.dtype).reshape(1, 256, 1, 1)
            arrays = {"a": values, "b": values}
            yield self.case("Concat", f"{precision} {repeat} {index}", arrays, {"a": a, "b": b, "output": output})

    def resize_bilinear(self, precision: str, repeat: int) -> Iterator[Case]:
        for index in range(4 if self.large else 1):
            x = self.quantization(precision, (repeat + index) % 4)
            size = ((14, 18), (13, 20), (5, 4), (21, 27))[(repeat + index) % 4]
            align, half = ((False, False), (True, False), (False, True))[(repeat + index) % 3]
            arrays = {"x": self.integers(x, 1, 8 if self.large else 2, 7, 9)}
            options = {"size": list(size), "align_corners": align, "half_pixel_centers": half}
            yield self.case("ResizeBilinear", f"{precision} {repeat} {index}", arrays, {"x": x}, **options)

    def max_pool(self, precision: str, repeat: int) -> Iterator[Case]:
        x = self.quantization(precision, repeat)
        arrays = {"x": self.integers(x, 1, 64, 40, 40) if self.large else self.integers(x, 1, 2, 6, 6)}
        options = {"kernel": [2 + repeat % 2] * 2, "strides": [1 + repeat % 2] * 2}
        yield self.case("MaxPool", f"{precision} {repeat}", arrays, {"x": x}, **options)

    def arg_max(self, precision: str, repeat: int) -> Iterator[Case]:
        x = self.quantization(precision, repeat)
        arrays = {"x": self.integers(x, 8000 if self.large else 8, 37)}
        yield self.case("ArgMax", f"{precision} {repeat}", arrays, {"x": x})


def weighted_kinds(family: str) -> list[tuple[str, str, str, str]]:
    """(kind, precision of the input, of the weights, granularity) that a family's runtimes have."""
    kinds = ("normal", "pointwise", "grouped", "depthwise", "inner")
    both = ("tensor", "channel")
    match family:
        case "tflite":
            table = [(kind, "u8", "u8", "tensor") for kind in (*kinds, "deconvolution") if kind != "grouped"]
            return table + [(kind, "i8", "i8", g) for kind in (*kinds, "deconvolution") for g in both]
        case "onnx":
            table = [(kind, "u8", "u8", "tensor") for kind in kinds]
            return table + [(kind, x, "i8", g) for kind in kinds for x in ("u8", "i8") for g in both]
        case "caffe2":
            return [(kind, "u8", "u8", "tensor") for kind in (*kinds, "deconvolution") if kind != "grouped"]
        case "torch":
            return [(kind, "u8", "i8", g) for kind in kinds for g in both]
    kinds = ("normal", "pointwise", "depthwise", "inner")
    return [(kind, x, "i8", g) for kind in kinds for x in ("u8", "i8") for g in both]


OPERATORS = {
    "tflite": (
        "requantize", "eltwise_sum", "average_pool", "mean", "leaky_relu", "relu", "sigmoid", "softmax",
        "concat", "resize_bilinear", "max_pool", "arg_max",
    ),
    "onnx": (
        "requantize", "eltwise_sum", "bias_add", "average_pool", "mean", "leaky_relu", "relu", "sigmoid",
        "softmax", "concat", "max_pool", "arg_max",
    ),
    "caffe2": (
        "eltwise_sum", "average_pool", "leaky_relu", "relu", "sigmoid", "softmax", "concat", "max_pool",
    ),
    "torch": ("eltwise_sum", "average_pool", "max_pool"),
    "openvino": ("eltwise_sum", "average_pool"),
}  # fmt: skip


def short(value: np.ndarray, bits: int) -> np.ndarray:
    """The values with a significand of so many bits."""
    fraction, exponent = np.frexp(value)
    return np.ldexp(np.rint(fraction * 2.0**bits), exponent - bits)


def same_pads(side: int, kernel: int, stride: int) -> dict[str, list[int]]:
    """TFLite's SAME padding as numbers."""
    total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
    return {"pads_begin": [total // 2] * 2, "pads_end": [total - total // 2] * 2}


def _dense(
    generator: Generator,
    x: Quantization,
    w: Quantization,
    outputs: int,
    positions: int,
    kernel: int,
    groups=1,
):
    """Channel 0 of each group steps (weight 1 at the window's centre, else 0), the others are constant."""
    depth, side = 8 if kernel == 1 else 4, int(positions**0.5)
    channels = depth * groups
    constant = generator.integers(x, channels)
    image = np.broadcast_to(constant[:, None, None], (channels, side + kernel - 1, side + kernel - 1)).copy()
    first = slice(0, None, depth)
    image[first] = x.zero_point
    steps = generator.steps(x, positions).reshape(side, side)
    image[first, kernel // 2 : kernel // 2 + side, kernel // 2 : kernel // 2 + side] = steps
    weights = generator.weights(w, outputs, depth, kernel, kernel)
    weights[:, 0] = w.zero_point
    weights[:, 0, kernel // 2, kernel // 2] = w.zero_point + 1
    centered = (constant.astype(np.int64) - x.zero_point).reshape(groups, depth)[np.arange(outputs) * groups // outputs]
    total = ((weights.astype(np.int64) - w.zero_point).sum((2, 3))[:, 1:] * centered[:, 1:]).sum(1)
    return {"x": image[None], "w": weights}, {"sum": total, **({"groups": groups} if groups > 1 else {})}


def _normal(generator, x, w, outputs, positions):
    return _dense(generator, x, w, outputs, positions, 3)


def _pointwise(generator, x, w, outputs, positions):
    return _dense(generator, x, w, outputs, positions, 1)


def _grouped(generator, x, w, outputs, positions):
    return _dense(generator, x, w, outputs, positions, 3, 4)


def _depthwise(generator, x, w, outputs, positions):
    """Windows apart from each other (stride 3); their centres step."""
    side = int(positions**0.5)
    constant = generator.integers(x, outputs)
    image = np.broadcast_to(constant[:, None, None], (outputs, 3 * side, 3 * side)).copy()
    image[:, 1::3, 1::3] = generator.steps(x, positions).reshape(side, side)
    weights = generator.weights(w, outputs, 1, 3, 3)
    weights[:, 0, 1, 1] = w.zero_point + 1
    total = (weights.astype(np.int64) - w.zero_point)[:, 0].sum((1, 2)) - 1
    total = total * (constant.astype(np.int64) - x.zero_point)
    return {"x": image[None], "w": weights}, {"sum": total, "groups": outputs, "strides": [3, 3]}


def _inner(generator, x, w, outputs, positions):
    rows = np.repeat(generator.integers(x, 1, 16), positions, axis=0)
    rows[:, 0] = generator.steps(x, positions)
    weights = generator.weights(w, outputs, 16)
    weights[:, 0] = w.zero_point + 1
    total = (weights.astype(np.int64) - w.zero_point)[:, 1:] @ (rows[0, 1:].astype(np.int64) - x.zero_point)
    return {"x": rows, "w": weights}, {"sum": total}


def _deconvolution(generator, x, w, outputs, positions):
    """Kernel 2, stride 2: windows do not overlap; the same weight at every tap."""
    side = int(positions**0.5)
    constant = generator.integers(x, 4)
    image = np.broadcast_to(constant[:, None, None], (4, side, side)).copy()
    image[0] = generator.steps(x, positions).reshape(side, side)
    weights = np.repeat(generator.weights(w, 4, outputs, 1, 1), 4, axis=3).reshape(4, outputs, 2, 2)
    weights[0] = w.zero_point + 1
    centered = weights[1:, :, 0, 0].astype(np.int64) - w.zero_point
    total = (centered * (constant[1:].astype(np.int64) - x.zero_point)[:, None]).sum(0)
    return {"x": image[None], "w": weights}, {"sum": total, "strides": [2, 2]}


LAYOUTS = {
    "normal": _normal, "pointwise": _pointwise, "grouped": _grouped, "depthwise": _depthwise, "inner": _inner,
    "deconvolution": _deconvolution,
}  # fmt: skip
