"""Operations that give each channel a factor and an offset: ``y[c] = x[c] * scale[c] + offset[c]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ovlpt.fusions.evaluation import evaluate, is_constant
from ovlpt.fusions.fusion import is_shared
from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.shapes import order_of
from ovlpt.openvino_api import Node, Output
from ovlpt.operations.families import ARITHMETIC
from ovlpt.trace import reject_unless

BATCH_NORM = ("opset1.BatchNormInference", "opset5.BatchNormInference")


@dataclass(frozen=True)
class Affine:
    """``x * scale + offset``; float64 of shape () or (channels,)."""

    scale: np.ndarray
    offset: np.ndarray

    def then(self, other: Affine) -> Affine:
        return Affine(self.scale * other.scale, self.offset * other.scale + other.offset)


IDENTITY = Affine(np.ones(()), np.zeros(()))


def constant_port(node: Node) -> int | None:
    """The port of the only constant operand of an elementwise operation, else None."""
    if node.get_type_name() not in ARITHMETIC:
        return None
    constants = [port for port in (0, 1) if is_constant(node.input_value(port))]
    if len(constants) != 1 or (node.get_type_name() == "Divide" and constants == [0]):
        return None
    return constants[0]


def data_of(node: Node) -> Output:
    """The data of a Transpose, a normalization or an elementwise operation with a constant operand."""
    if node.get_type_name() == "BatchNormInference":
        return batch_norm_inputs(node)["data"]
    port = constant_port(node)
    return node.input_value(0 if port is None else 1 - port)


def batch_norm_inputs(node: Node) -> dict[str, Output]:
    """The inputs of a BatchNormInference by name; the two versions order them differently."""
    if node.get_type_info().version_id == "opset1":
        names = ("gamma", "beta", "data", "mean", "variance")
    else:
        names = ("data", "gamma", "beta", "mean", "variance")
    return dict(zip(names, node.input_values(), strict=True))


def batch_norm_port(node: Node, name: str) -> int:
    return list(batch_norm_inputs(node)).index(name)


def along(values: np.ndarray, rank: int, axis: int) -> np.ndarray | None:
    """A constant that broadcasts against ``rank`` dimensions as one value a channel, else None."""
    shape = (1,) * (rank - values.ndim) + values.shape
    if len(shape) > rank or any(size != 1 and at != axis for at, size in enumerate(shape)):
        return None
    return values.reshape(shape[axis]) if shape[axis] != 1 else values.reshape(())


def on_axis(values: np.ndarray, rank: int, axis: int) -> np.ndarray:
    """One value a channel as a constant of ``rank`` dimensions."""
    return np.reshape(values, [values.size if at == axis else 1 for at in range(rank)])


def operand(value: Output, rank: int, axis: int) -> np.ndarray:
    """A constant operand as one value a channel; raises `Rejected`."""
    shape = value.get_partial_shape()
    reject_unless(
        shape.is_static and along(np.empty(shape.to_shape(), np.bool_), rank, axis) is not None,
        "not_per_channel",
        f"a constant of the shape {shape} varies along an axis other than that of the channels, {axis}",
    )
    values = evaluate(value)
    reject_unless(values is not None, "not_constant", f"{value.get_node().get_friendly_name()} is not a constant")
    return along(values, rank, axis)


def affine_of(node: Node, axis: int) -> Affine:
    """What the node does to the channels on ``axis`` of its output; raises `Rejected`."""
    kind = node.get_type_name()
    if kind == "BatchNormInference":
        inputs = batch_norm_inputs(node)
        values = {name: evaluate(value) for name, value in inputs.items() if name != "data"}
        for name, value in values.items():
            reject_unless(value is not None, "not_constant", f"the {name} of the normalization is not a constant")
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = values["gamma"] / np.sqrt(values["variance"] + node.get_attributes()["epsilon"])
        affine = Affine(scale, values["beta"] - values["mean"] * scale)
    else:
        port, rank = constant_port(node), rank_of(node.output(0))
        keeps = node.get_input_partial_shape(1 - port).rank == node.get_output_partial_shape(0).rank
        reject_unless(
            rank is not None and keeps, "dynamic_rank", f"the rank of {node.get_friendly_name()} is not fixed"
        )
        values = operand(node.input_value(port), rank, axis)
        zero, one = np.zeros(()), np.ones(())
        with np.errstate(divide="ignore"):
            affine = {
                "Add": lambda: Affine(one, values),
                "Subtract": lambda: Affine(one, -values) if port == 1 else Affine(-one, values),
                "Multiply": lambda: Affine(values, zero),
                "Divide": lambda: Affine(1 / values, zero),
            }[kind]()
    finite = np.isfinite(affine.scale).all() and np.isfinite(affine.offset).all()
    reject_unless(finite, "not_finite", f"a factor or offset of {node.get_friendly_name()} is not finite")
    return affine


def rank_of(value: Output) -> int | None:
    rank = value.get_partial_shape().rank
    return rank.get_length() if rank.is_static else None


@dataclass(frozen=True)
class Path:
    """The nodes between a value and the operation that it comes from, in the order of the data."""

    source: Node
    axis: int  # of the source's output
    nodes: tuple[Node, ...]

    def with_axes(self) -> Iterator[tuple[Node, int]]:
        axis = self.axis
        for node in self.nodes:
            if node.get_type_name() == "Transpose":
                axis = order_of(node).index(axis)
            yield node, axis

    @property
    def last_axis(self) -> int:
        return [self.axis, *(axis for _, axis in self.with_axes())][-1]

    def check_unshared(self) -> None:
        for node in (self.source, *self.nodes):
            reject_unless(
                not is_shared(node.output(0)),
                "shared",
                f"the value of {node.get_friendly_name()} in between has another reader",
            )


def path_above(value: Output, axis_of: Callable[[Node], int | None], through: frozenset[str]) -> Path | None:
    """The way up from ``value`` to the first node for which ``axis_of`` gives a channel axis.

    It passes Transposes and the operations in ``through`` that have one constant operand; None where it ends
    elsewhere.
    """
    nodes: list[Node] = []
    while True:
        node = value.get_node()
        axis = axis_of(node)
        if axis is not None:
            return Path(node, axis, tuple(reversed(nodes)))
        kind = node.get_type_name()
        if kind == "Transpose":
            passes = order_of(node) is not None
        elif kind == "BatchNormInference":
            passes = kind in through
        else:
            passes = kind in through and constant_port(node) is not None
        if not passes:
            return None
        nodes.append(node)
        value = data_of(node)


def set_operand(node: Node, values: np.ndarray, axis: int) -> None:
    """Give the elementwise operation another constant operand, one value a channel."""
    port = constant_port(node)
    precision = precision_of(node.input_value(port))
    shaped = on_axis(values, rank_of(node.output(0)), axis)
    node.input(port).replace_source_output(constant(shaped, precision).output(0))
