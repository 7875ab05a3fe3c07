"""What a model says of what was done to it: a section of its runtime information, which a saved file keeps."""

from __future__ import annotations

from collections.abc import Iterable

from ovlpt.graph.bodies import all_nodes
from ovlpt.openvino_api import Model, Node

SECTION = "ovlpt"
TRANSFORMED = "transformed"  # by `LowPrecision`
LOWERED = "lowered"  # for which plugin
CPU = "cpu"  # the kind of CPU that the forms of its layers were chosen for
PRECISION = "precision"  # in which floats are asked for, where that is f16
QUANTIZATION = "quantization"  # of a model that passes unchanged


def stamp(model: Model, **facts: str) -> None:
    """Write down facts of the model."""
    for key, value in facts.items():
        model.set_rt_info(value, [SECTION, key])


def stamped(model: Model, key: str) -> str:
    """What the model says of one fact; empty where it says nothing."""
    return model.get_rt_info([SECTION, key]).astype(str) if model.has_rt_info([SECTION, key]) else ""


def is_transformed(model: Model) -> bool:
    """Whether `LowPrecision` has made the model."""
    return bool(stamped(model, TRANSFORMED))


def has_lost_stamp(model: Model) -> bool:
    """Whether the model says nothing of a transformation and holds what only one makes (`are_transformed`). A model made of
    another's nodes has none of its runtime information.
    """
    return not is_transformed(model) and are_transformed(all_nodes(model))


def are_transformed(nodes: Iterable[Node]) -> bool:
    """Whether a FakeQuantize of real numbers among them gives integers."""
    return any(
        node.get_type_name() == "FakeQuantize"
        and node.get_input_element_type(0).is_real()
        and not node.get_output_element_type(0).is_real()
        for node in nodes
    )
