"""All causes for a layer with weights, and advice for the model that was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ovlpt.graph.bodies import all_nodes
from ovlpt.inspect.advice import Advice, QuantizeWeights, Requantize
from ovlpt.inspect.conditions import (
    BECOME_PRODUCTS,
    DATA,
    WEIGHTS,
    Lack,
    data_ports,
    kernel_limit,
    lacks,
    quantize_input,
    title,
    weights_ports,
)
from ovlpt.inspect.executed import has_weights
from ovlpt.inspect.explain.answers import Answer, Explanation, Finding
from ovlpt.inspect.explain.execution import NO_LAYER
from ovlpt.openvino_api import Model, Node
from ovlpt.operations import RECURRENT
from ovlpt.reasons import ROWS, Cause
from ovlpt.trace import Reason


def diagnosed(found: Explanation, source: Model) -> Explanation:
    """All causes for operations with weights, with advice for the model that was given."""
    given = {node.get_friendly_name(): node for node in all_nodes(source)}
    operations = [
        replace(each, answer=_diagnosed(each.answer, given[each.name]))
        if each.answer is not None and has_weights(each.kind) and each.name in given
        else each
        for each in found.operations
    ]
    return Explanation(operations, found.hazards, found.overflow_risks, found.executed)


def _diagnosed(answer: Answer, node: Node) -> Answer:
    if not has_weights(node.get_type_name()) and node.get_type_name() not in BECOME_PRODUCTS:
        return replace(answer, causes=(Finding(answer.reason, answer.root),))
    if (final := kernel_limit(node, answer.layer)) is not None:
        only = Finding(final, title(node))
        return replace(
            answer, reason=final, root=only.root, root_reason=final, help=ROWS[final.code].help, causes=(only,)
        )
    code = answer.root_reason.code
    if answer.reason.code == "dynamic_scales" or code == NO_LAYER.code or _is_final(answer, node):
        return replace(answer, causes=(Finding(answer.reason, answer.root),))
    where = WEIGHTS if ROWS[code].of_weights and answer.reason.code != "lost_upstream" else DATA
    found = lacks(node)
    ports = data_ports(node)
    are_activations = (len(ports) > 1 and where is WEIGHTS) or ports == [1]
    if are_activations:  # what a transformation calls weights
        where, code = DATA, ROWS[code].for_data or code
        answer = replace(answer, reason=Reason(code, answer.reason.text), root_reason=Reason(code, answer.reason.text))
    same = [lack for lack in found if lack.where == where]
    others = [Finding(lack.reason, lack.root, lack.advice) for lack in found if lack.where != where]
    own = Finding(answer.reason, answer.root, _advice(answer, node, where))
    if found and (ROWS[code].vague or are_activations or _is_quantized_above(answer, same)):
        causes, others = [Finding(lack.reason, lack.root, lack.advice) for lack in found], []
    elif same:
        own, *more = (Finding(lack.reason, lack.root, lack.advice) for lack in same)
        # of weights that are stored or quantized as no kernel takes them the given model alone tells how
        is_shown = own.reason.code == "weights_precision" or (code == "weights_not_quantized" != own.reason.code)
        is_said = own.advice is not None and not is_shown
        causes = [replace(own, reason=answer.reason, root=answer.root) if is_said else own, *more]
    elif code == "weights_not_quantized":
        text = "its weights are quantized, but not to one scale per output channel or for all of them"
        causes = [] if others else [replace(own, reason=Reason("weights_granularity", text))]
    else:
        causes = [own]
    causes += others
    advices = "; ".join(dict.fromkeys(str(each.advice) for each in causes if each.advice))
    if causes[0].reason is not answer.reason:
        reason = causes[0].reason
        answer = replace(answer, reason=reason, root=causes[0].root, root_reason=reason, help=ROWS[reason.code].help)
    return replace(answer, help=advices or answer.help, causes=tuple(causes))


def _is_quantized_above(answer: Answer, found: Sequence[Lack]) -> bool:
    """Whether the data is quantized as no kernel takes it; of 16 bits, which are dropped, the result shows nothing."""
    if answer.reason.code in ("no_fake_quantize", "lost_upstream", "float_result"):
        return any(lack.reason.code == "levels" for lack in found)
    return bool(found) and answer.reason.code == "fake_quantize_stays"


def _is_final(answer: Answer, node: Node) -> bool:
    """Whether a layer stays in float however it is quantized: one without a rule, and a recurrent one by its form or by
    its numbers.
    """
    if answer.reason.code in ("no_rule", "pairs_saturate"):
        return True
    return node.get_type_name() in RECURRENT and ROWS[answer.reason.code].cause in (Cause.GRAPH, Cause.HARDWARE)


def _advice(answer: Answer, node: Node, where: str) -> Advice | None:
    """Where the given model shows no lack, and a transformation or the plugin refuses all the same."""
    row = ROWS[answer.root_reason.code]
    if row.code == "constant_data" or row.cause in (Cause.SETTINGS, Cause.HARDWARE):
        return None
    if where is WEIGHTS:
        return QuantizeWeights(node.get_type_name(), node.get_friendly_name(), weights_ports(node))
    kinds = {port: node.input_value(port).get_node().get_type_name() for port in data_ports(node)}
    port = next((port for port, kind in kinds.items() if kind != "FakeQuantize"), None)
    if port is None:
        return Requantize(node.input_value(max(kinds)).get_node().get_friendly_name(), signed=True)
    return quantize_input(node, port)
