"""A frozen TensorFlow graph written by hand, in as much of GraphDef's wire format as it needs."""

from __future__ import annotations

import struct

import numpy as np

FLOAT, BOOL, INT32 = 1, 10, 3
_TYPES = {"float32": FLOAT, "bool": BOOL, "int32": INT32}


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _shape(sizes) -> bytes:
    return b"".join(_bytes(2, _number(1, size)) for size in sizes)


# Attribute values
def of_type(code: int) -> bytes:
    return _number(6, code)


def of_int(value: int) -> bytes:
    return _number(3, value)


def of_bool(value: bool) -> bytes:
    return _number(5, value)


def of_float(value: float) -> bytes:
    return _varint(4 << 3 | 5) + struct.pack("<f", value)


def of_text(value: str) -> bytes:
    return _bytes(2, value)


def of_ints(values) -> bytes:
    return _bytes(1, b"".join(_number(3, value) for value in values))


def of_shape(sizes) -> bytes:
    return _bytes(7, _shape(sizes))


def of_tensor(values: np.ndarray) -> bytes:
    tensor = _number(1, _TYPES[values.dtype.name]) + _bytes(2, _shape(values.shape)) + _bytes(4, values.tobytes())
    return _bytes(8, tensor)


def node(name: str, operation: str, inputs=(), **attributes: bytes) -> bytes:
    entries = (_bytes(5, _bytes(1, key) + _bytes(2, value)) for key, value in attributes.items())
    text = _bytes(1, name) + _bytes(2, operation) + b"".join(_bytes(3, source) for source in inputs)
    return _bytes(1, text + b"".join(entries))


def constant(name: str, values: np.ndarray) -> bytes:
    return node(name, "Const", dtype=of_type(_TYPES[values.dtype.name]), value=of_tensor(values))


def batch_norm_with_switch() -> bytes:
    """Conv2D, Switch, FusedBatchNormV3 for training and for inference, Merge, Relu; all in NHWC."""
    rng = np.random.default_rng(0)
    real = {"T": of_type(FLOAT)}
    parameters = ("gamma", "beta", "mean", "variance")
    graph = node("x", "Placeholder", dtype=of_type(FLOAT), shape=of_shape([1, 8, 8, 3]))
    graph += node("is_training", "Placeholder", dtype=of_type(BOOL), shape=of_shape([]))
    graph += constant("weights", rng.normal(size=(3, 3, 3, 4)).astype(np.float32))
    ones, nhwc = of_ints([1, 1, 1, 1]), of_text("NHWC")
    graph += node(
        "conv",
        "Conv2D",
        ["x", "weights"],
        **real,
        strides=ones,
        dilations=ones,
        padding=of_text("SAME"),
        data_format=nhwc,
    )
    for name in parameters:
        graph += constant(name, rng.uniform(0.5, 1.5, 4).astype(np.float32))
    for name in ("conv", *parameters):
        graph += node(f"{name}/switch", "Switch", [name, "is_training"], **real)
    for name, port in (("inference", ""), ("training", ":1")):
        inputs = [f"{source}/switch{port}" for source in ("conv", *parameters)]
        attributes = {
            "epsilon": of_float(1e-3),
            "data_format": nhwc,
            "is_training": of_bool(name == "training"),
        }
        graph += node(name, "FusedBatchNormV3", inputs, **real, U=of_type(FLOAT), **attributes)
    graph += node("merge", "Merge", ["inference", "training"], **real, N=of_int(2))
    graph += node("out", "Relu", ["merge"], **real)
    return graph + _bytes(4, _number(1, 1087))
