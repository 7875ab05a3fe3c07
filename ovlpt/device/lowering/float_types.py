"""What keeps a lowered model as it is where a CPU is asked for floats in f16 (``INFERENCE_PRECISION_HINT``).

For bf16 the CPU plugin changes the types of layers that are ready to run. For f16, on a CPU that computes in it, it changes
those of the model before anything else, as a GPU does: constants and plain operations become f16, relaxed
operations keep reporting f32, and what is computed in f64 becomes f32. Between them it puts Converts, which part
a layer from its post-operations; scales lose bits, sums overflow, or it throws. A GPU's model reports f16 where it should
(`ovlpt.device.lowering.half`). A CPU's may be saved, and is not to depend on a hint: its nodes are marked.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant, constant_above
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.relaxed import is_relaxed, mark_of_f32, mark_of_kept_types
from ovlpt.graph.shapes import shape_of
from ovlpt.openvino_api import MARKS_TYPES, Model, Node
from ovlpt.operations import WEIGHTED


def keep_types(model: Model) -> None:
    """Mark each node that reads or reports real numbers, so that its types stay and what is not quantized runs in f32.

    Releases before 2026.3 have only a mark that keeps nodes from bf16, too. One that has such a mark keeps it.
    """
    key, mark = mark_of_kept_types()
    for node in filter(_is_real, all_nodes(model)):
        if key not in node.get_rt_info():
            _mark(node, key, mark)


def keep_integer_sums(model: Model) -> None:
    """Mark what reads the sums of a layer of integers as floats, as in a model that is quantized dynamically: they are beyond
    the largest number of f16, and what is computed of them would be no number.
    """
    for node in all_nodes(model):
        if node.get_type_name() in WEIGHTED and node.get_output_element_type(0).is_integral():
            key, mark = mark_of_f32()
            for reader in readers_of(node):
                if reader.get_type_name() == "Convert" and _is_real(reader) and key not in reader.get_rt_info():
                    _mark(reader, key, mark)


def keep_sums(model: Model) -> list[Node]:
    """Keeps a MatMul of integers, and the sums that stand for zero points (`ovlpt.main.mat_mul`), in f32 where floats are
    bf16: each is large, and what they differ by is small.
    """
    changed = []
    for product in model.get_ordered_ops():
        if product.get_type_name() == "MatMul" and is_relaxed(product) and (nodes := _less_sums(product)):
            key, mark = mark_of_f32()  # to read it takes 2 ms, and few models need it
            changed.append(product)
            for node in (product, *nodes):
                _mark(node, key, mark)
    return changed


def spread_factors(model: Model) -> list[Node]:
    """Constants of an element for each place along an axis of known length, in sums that `keep_sums` marks: before 2026.3 a
    mark that comes from a file is lost where the plugin makes a power of a constant of one element.
    """
    if MARKS_TYPES:
        return []
    key, _ = mark_of_f32()
    nodes = model.get_ordered_ops()
    sums = [node for node in nodes if node.get_type_name() == "ReduceSum" and key in node.get_rt_info()]
    return [node for each in sums for node in _by_one_element(each) if _spread(node)]


def _by_one_element(sums: Node) -> list[Node]:
    """What multiplies sums by a constant of one element, and adds another."""
    found, node = list[Node](), sums
    while len(readers := readers_of(node)) == 1 and readers[0].get_type_name() in ("Add", "Multiply"):
        node = readers[0]
        values = constant_above(node.input_value(1))
        if values is None or values.size != 1:
            break
        found.append(node)
    return found


def _spread(node: Node) -> bool:
    for place, size in enumerate(reversed(shape_of(node.output(0)) or ())):
        if (size or 0) > 1:
            values = np.full((size, *[1] * place), constant_above(node.input_value(1)))
            node.input(1).replace_source_output(constant(values, "f32").output(0))
            return True
    return False


def _less_sums(product: Node) -> list[Node]:
    """What adds sums to a product, and makes them."""
    found, above, node = list[Node](), list[Node](), product
    while len(readers := readers_of(node)) == 1 and readers[0].get_type_name() in ("Add", "Clamp"):
        node = readers[0]
        above.append(node)
        if node.get_type_name() == "Add" and (sums := _sums(node.input_value(1).get_node())):
            found += [*above, *sums]
            above = []
    return found


def _sums(node: Node) -> list[Node]:
    """From a sum of integers down to ``node``, if constants at most have been multiplied and added on the way."""
    found = [node]
    while node.get_type_name() in ("Add", "Clamp", "Multiply", "Reshape"):
        node = node.input_value(0).get_node()
        found.append(node)
    return found if node.get_type_name() == "ReduceSum" and is_relaxed(node) else []


def _mark(node: Node, key: str, mark: Any) -> None:
    if hasattr(node, "set_rt_info"):
        node.set_rt_info(mark, key)
    else:
        node.get_rt_info()[key] = ""


def _is_real(node: Node) -> bool:
    outputs = map(node.get_output_element_type, range(node.get_output_size()))
    inputs = map(node.get_input_element_type, range(node.get_input_size()))
    return any(kind.is_real() for kind in chain(outputs, inputs))
