"""What was replaced reads nothing any more, whoever still holds it.

OpenVINO counts a replaced node among the readers of its inputs for as long as something in Python holds it: a frame that a
debugger or a profiler keeps, or the thread of a Dask worker that looks at all frames every few milliseconds. Rules ask
for the only reader of a value, so without this the graph would depend on references held elsewhere.
"""

from __future__ import annotations

import functools

import numpy as np

from ovlpt.openvino_api import Constant, Node

# Part of a model whether or not anything reads them.
_ENDS = frozenset(("Parameter", "Result", "Assign", "If", "Loop", "TensorIterator"))


def is_replaced(node: Node) -> bool:
    """Whether nothing reads the node, and it is not one that nothing has to read."""
    for output in node.outputs():  # no generator: this is asked of every node that passes are shown
        if output.get_target_inputs():
            return False
    return node.get_type_name() not in _ENDS


def sources_of(node: Node) -> list[Node]:
    """What the node reads."""
    return [value.get_node() for value in node.input_values()]


def detach(*nodes: Node) -> None:
    """Those of ``nodes`` that nothing reads any more leave the graph, with what only they had read."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if (count := node.get_input_size()) and is_replaced(node):
            pending += sources_of(node)
            node.set_arguments([_nothing()] * count)


def detach_results(results: list[Node]) -> None:
    """Let Results of a model that is not used as one read nothing."""
    for result in results:
        result.input(0).replace_source_output(_nothing())


@functools.cache
def _nothing():
    """What replaced nodes read."""
    return Constant(np.zeros((), np.float32)).output(0)
