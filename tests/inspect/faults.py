"""A lowering that computes wrong numbers, for tests of what has to notice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ovlpt.device import PluginLowering
from ovlpt.device.lowering.rules import Phase, Rule
from ovlpt.openvino_api import Constant, Model, Node, opset1
from tests import networks


def pointwise(sizes: Sequence[int], bias: bool = False) -> Model:
    """FakeQuantize, 1x1 Convolution, Relu, FakeQuantize over [0, 2], 1x1 Convolution."""
    x = networks.parameter([1, 16, 4, 4])
    first = networks.convolution(networks.quantized(x, -1, 1.55, name="input"), 16, kernel=1, bias=bias, name="first")
    second = networks.quantized(opset1.relu(first), 0, 2, name="middle")
    net = networks.model(networks.convolution(second, 8, kernel=1, seed=1, bias=bias, name="second"), x)
    net.reshape(list(sizes))
    return net


def break_lowering(
    monkeypatch,
    where: Callable[[Node, PluginLowering], bool],
    only_at_one_pixel: bool = False,
    name: str = "middle",
) -> None:
    """Double the highest output of the FakeQuantize of this name, ``where`` that is asked for.

    ``only_at_one_pixel``: its data instead, when it runs, where they have one pixel.
    """
    rules_of = PluginLowering.rules

    def wrong(lowering: PluginLowering) -> Callable[[Node], Node]:
        def rule(node: Node) -> Node:
            end = node.input_value(4)
            if node.get_friendly_name() == name and isinstance(end.get_node(), Constant) and where(node, lowering):
                if only_at_one_pixel:
                    data = node.input_value(0)
                    sizes = opset1.gather(opset1.shape_of(data), np.array([2, 3]), np.array(0))
                    pixels = opset1.convert(opset1.reduce_prod(sizes, np.array([0]), False), "f32")
                    more = opset1.floor(opset1.divide(np.float32(1), pixels))
                    node.input(0).replace_source_output(
                        opset1.multiply(data, opset1.add(np.float32(1), more)).output(0)
                    )
                else:
                    doubled = opset1.constant(2 * end.get_node().data)
                    node.input(4).replace_source_output(doubled.output(0))
            return node

        return rule

    def rules(lowering: PluginLowering, phase: Phase) -> list[Rule]:
        own = [Rule(wrong(lowering), frozenset(("FakeQuantize",)), ("CPU",), "nothing")] if phase is Phase.ALL else []
        return [*own, *rules_of(lowering, phase)]

    monkeypatch.setattr(PluginLowering, "rules", rules)
