"""Recurrent cells as the operations that low precision has rules for, as a GPU has them before its own LPT."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.names import made_for
from ovlpt.openvino_api import Node, Output, opset1

_FUNCTIONS: dict[str, Callable[[Output], Node]] = {"relu": opset1.relu, "sigmoid": opset1.sigmoid, "tanh": opset1.tanh}
_Function = Callable[[Output], Node]


def decomposed_rnn_cell(node: Node) -> Node | None:
    """``f(x W' + h R' + b)``"""
    functions = _functions(node)
    if functions is None:
        return None
    (data, state, weights, recurrent, bias), (function,) = node.input_values(), functions[:1]
    sums = opset1.add(_product(node, "Data", data, weights), _product(node, "State", state, recurrent))
    return function(opset1.add(sums, bias).output(0))


def decomposed_gru_cell(node: Node) -> Node | None:
    """``(1 - z) h' + z h`` of the gates z and r, where the new state h' is ``g(x W' + (r h) R' + b)``, or with
    linear_before_reset ``g(x W' + b + r (h R' + c))``.
    """
    functions = _functions(node)
    if functions is None:
        return None
    (data, state, weights, recurrent, bias), (gate, new) = node.input_values(), functions[:2]
    size, linear_first = node.get_attributes()["hidden_size"], node.get_attributes()["linear_before_reset"]
    of_data = _parted(_product(node, "Data", data, weights), 1, [size] * 3)
    biases = _parted(bias, 0, [size] * (4 if linear_first else 3))
    if linear_first:
        *gates, candidate = _parted(_product(node, "State", state, recurrent), 1, [size] * 3)
    else:
        for_gates, for_new = _parted(recurrent, 0, [2 * size, size])
        gates = _parted(_product(node, "State", state, for_gates), 1, [size] * 2)
    update, reset = (gate(_sum(x, h, b)) for x, h, b in zip(of_data[:2], gates, biases[:2], strict=True))
    if linear_first:
        inner = opset1.multiply(reset, opset1.add(candidate, biases[3])).output(0)
    else:
        inner = _product(node, "Reset", opset1.multiply(reset, state).output(0), for_new)
    found = new(_sum(of_data[2], inner, biases[2]))
    rest = opset1.subtract(constant(np.ones((), np.float32), precision_of(data)), update)
    return opset1.add(opset1.multiply(rest, found), opset1.multiply(update, state))


def _functions(node: Node) -> list[_Function] | None:
    """None where a cell does more than they say."""
    attributes = node.get_attributes()
    if attributes["clip"] or not set(attributes["activations"]) <= _FUNCTIONS.keys():
        return None
    return [_FUNCTIONS[name] for name in attributes["activations"]]


def _product(node: Node, part: str, data: Output, weights: Output) -> Output:
    product = opset1.matmul(data, weights, False, True)
    product.set_friendly_name(made_for(node.get_friendly_name(), part))
    return product.output(0)


def _sum(*values: Output) -> Output:
    first, *others = values
    for other in others:
        first = opset1.add(first, other).output(0)
    return first


def _parted(value: Output, axis: int, sizes: list[int]) -> list[Output]:
    lengths = constant(np.array(sizes), "i64")
    return opset1.variadic_split(value, constant(np.array(axis), "i64"), lengths).outputs()
