"""What keeps a lowered model as it is where a CPU is asked for floats in f16 (``INFERENCE_PRECISION_HINT``).

For bf16 the CPU plugin changes the types of layers that are ready to run. For f16, on a CPU that computes in it, it changes
those of the model before anything else, as a GPU does: constants and plain operations become f16, relaxed
operations keep reporting f32, and what is computed in f64 becomes f32. Between them it puts Converts, which part
a layer from its post-operations; scales lose bits, sums overflow, or it throws. A GPU's model reports f16 where it should
(`ovlpt.device.lowering.half`). A CPU's may be saved, and is not to depend on a hint: its nodes are marked.
"""

from __future__ import annotations

import functools
from typing import Any

from ovlpt.graph.bodies import all_nodes
from ovlpt.openvino_api import MARKS_TYPES, Core, Model, Node

_NAME, _VALUE = ("DisablePrecisionConversion", "f32:f16") if MARKS_TYPES else ("precise", "")
_MARKED = f"""<net name="m" version="11"><layers><layer id="0" name="p" type="Parameter" version="opset1">
<data shape="1" element_type="f32"/><rt_info><attribute name="{_NAME}" version="0" value="{_VALUE}"/></rt_info>
<output><port id="0" precision="FP32"/></output></layer>
<layer id="1" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers>
<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"""


def keep_types(model: Model) -> None:
    """Mark each node that reads or reports real numbers, so that its types stay and what is not quantized runs in f32.

    Releases before 2026.3 have only a mark that keeps nodes from bf16, too.
    """
    key, mark = f"{_NAME}_0", _mark()
    for node in filter(_is_real, all_nodes(model)):
        if hasattr(node, "set_rt_info"):
            node.set_rt_info(mark, key)
        else:
            node.get_rt_info()[key] = ""


def _is_real(node: Node) -> bool:
    return any(port.get_element_type().is_real() for ports in (node.outputs, node.inputs) for port in ports())


@functools.cache
def _mark() -> Any:
    """That of a node that is read with it: Python has no name for it."""
    return Core().read_model(_MARKED.encode(), b"").get_parameters()[0].get_rt_info()[f"{_NAME}_0"]
