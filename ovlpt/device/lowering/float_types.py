"""What keeps a lowered model as it is where a CPU is asked for floats in f16 (``INFERENCE_PRECISION_HINT``).

For bf16 the CPU plugin changes the types of layers that are ready to run. For f16, on a CPU that computes in it, it changes
those of the model before anything else, as a GPU does: constants and plain operations become f16, relaxed
operations keep reporting f32, and what is computed in f64 becomes f32. Between them it puts Converts, which part
a layer from its post-operations; scales lose bits, sums overflow, or it throws. A GPU's model reports f16 where it should
(`ovlpt.device.lowering.half`). A CPU's may be saved, and is not to depend on a hint: its nodes are marked.
"""

from __future__ import annotations

from itertools import chain

from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.relaxed import mark_of_kept_types
from ovlpt.openvino_api import Model, Node


def keep_types(model: Model) -> None:
    """Mark each node that reads or reports real numbers, so that its types stay and what is not quantized runs in f32.

    Releases before 2026.3 have only a mark that keeps nodes from bf16, too.
    """
    key, mark = mark_of_kept_types()
    for node in filter(_is_real, all_nodes(model)):
        if hasattr(node, "set_rt_info"):
            node.set_rt_info(mark, key)
        else:
            node.get_rt_info()[key] = ""


def _is_real(node: Node) -> bool:
    outputs = map(node.get_output_element_type, range(node.get_output_size()))
    inputs = map(node.get_input_element_type, range(node.get_input_size()))
    return any(kind.is_real() for kind in chain(outputs, inputs))
