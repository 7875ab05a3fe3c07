"""From the pass's own result to a form that a plugin executes in int8 with its own LPT off.

`ovlpt.device.lowering.rules` is the table of the rules; the other modules hold the functions that the rows name.
"""

from __future__ import annotations

from collections.abc import Iterable

from ovlpt import plugin_config
from ovlpt.device.lowering import links, scales
from ovlpt.device.lowering.float_types import keep_types
from ovlpt.device.lowering.rules import RULES, Phase, Rule
from ovlpt.device.release import check_release
from ovlpt.graph.bodies import operations_of, with_bodies
from ovlpt.graph.constants import numbers_read_once, remembering
from ovlpt.graph.names import given
from ovlpt.graph.recurrent import has_quantized_weights
from ovlpt.graph.relaxed import is_relaxed
from ovlpt.graph.replaced import detach, is_replaced
from ovlpt.graph.stamp import LOWERED, stamp, stamped
from ovlpt.openvino_api import MARKS_TYPES, Model, ModelPass, Node
from ovlpt.operations import WEIGHTED
from ovlpt.prerequisites.convert_precision import ConvertPrecision
from ovlpt.trace import InputError, Outcome, Reason, Trace


class PluginLowering(ModelPass):
    """Prepares the result of `LowPrecision` for ``core.compile_model`` on ``device``.

    The numbers stay the same. Raises `InputError` for a device without lowering rules.

    ``lpt_on``: the model will be compiled with the plugin's own LPT on. Only then does the plugin form quantized
    recurrent layers; without it the plugin folds their weights, and they run in float. None: on for a model with such
    layers on a CPU, as `ovlpt.lpt_properties` tells ``compile_model``.
    ``serializable``: the result may be saved and compiled from the file; False is for a model that is compiled directly,
    and omits what hides a saved model from the plugin's own LPT.
    ``precision``: the type in which a GPU will run what is not in low precision, "f16" or "f32"; "f16" where a CPU will
    be asked for that (`keep_types`).
    ``faster_kernels``: choose a kernel where another than the plugin's choice is faster on this machine's CPU, in a model
    that is compiled directly.
    ``trace``: receives an event for each node that a rule changes, with what the plugin would do without the rule.
    """

    def __init__(
        self,
        device: str = "CPU",
        lpt_on: bool | None = None,
        serializable: bool = True,
        precision: str = "f32",
        trace: Trace | None = None,
        faster_kernels: bool = True,
    ):
        super().__init__()
        self.device = plugin_config.kind(device)
        if self.device not in ("CPU", "GPU"):
            raise InputError(f'no lowering for device "{device}"; there is one for "CPU" and "GPU"')
        self.lpt_on, self.precision = lpt_on, precision
        self.serializable = serializable or self.device != "CPU"
        self.faster_kernels = faster_kernels and not self.serializable
        self.trace = Trace() if trace is None else trace
        self.computes_in_f32 = False  # whether `ConvertPrecision` was run
        self.keeps_types = True  # False: floats will be asked for in ``precision``, and in no other type

    def rules(self, phase: Phase) -> list[Rule]:
        """The rows that hold for this device and this use of the model, in order."""
        return [rule for rule in RULES if rule.phase is phase and self._holds(rule)]

    def run_on_model(self, model: Model) -> bool:
        if stamped(model, LOWERED):
            return False
        named = operations_of(model)
        if self.lpt_on is None:
            self.lpt_on = self.device == "CPU" and has_quantized_weights(node for node, _ in named)
        keeps_types = self.device == "CPU" and (self.precision == "f16" or (MARKS_TYPES and self.keeps_types))
        check_release(links.guard_output if self.device == "GPU" else scales.compute_scale_in_f64)
        nodes = self._lowered(Phase.TYPES, named)
        # where its types stay, a model of f16 would compute in it; elsewhere its Converts hide who reads a value
        if self.device == "CPU" and not self.computes_in_f32 and ConvertPrecision().run_on_model(model):
            nodes = operations_of(model)
        with remembering(), numbers_read_once():
            lowered = self._lowered(Phase.RELAXED, nodes)
            self._lowered(Phase.ALL, lowered)
        for rule in self.rules(Phase.MODEL):
            self._record(rule, rule.apply(model))
        bodies = list(with_bodies(model))
        for rule in self.rules(Phase.BODIES):
            for body in bodies:
                self._record(rule, rule.apply(body))
        model.validate_nodes_and_infer_types()
        if keeps_types:
            keep_types(model)
        if self.serializable:
            stamp(model, lowered=self.device)
        return True

    def _holds(self, rule: Rule) -> bool:
        return (
            self.device in rule.devices
            and (self.serializable or not rule.saved_only)
            and (self.faster_kernels or not rule.for_speed)
            and rule.lpt_on in (None, bool(self.lpt_on))
            and rule.precision in (None, self.precision)
            and (rule.here is None or self.serializable or rule.here())
        )

    def _lowered(self, phase: Phase, nodes: Iterable[tuple[Node, str]]) -> list[tuple[Node, str]]:
        """What stands in the place of each node, given with its type name, once the rules of its kind are followed."""
        rules = self.rules(phase)
        of_kind: dict[str, list[Rule]] = {}
        lowered = []
        for node, kind in nodes:
            if (follows := of_kind.get(kind)) is None:
                follows = of_kind[kind] = [rule for rule in rules if not rule.operations or kind in rule.operations]
            if follows and (phase is not Phase.RELAXED or is_relaxed(node)) and not is_replaced(node):
                lowered.append(self._follow(follows, node, kind, rules))
            else:
                lowered.append((node, kind))
        return lowered

    def _follow(self, follows: Iterable[Rule], node: Node, kind: str, rules: list[Rule]) -> tuple[Node, str]:
        """``follows``: those of ``rules`` that are of its kind; a layer that becomes one of another kind follows on as such."""
        name, read = node.get_friendly_name(), node.input_values()  # a rule may rename the node
        for rule in follows:
            if (lowered := rule.apply(node)) is not None:
                self._add(rule, kind, name)
                detach(node, *(value.get_node() for value in read))
                node, name = lowered, lowered.get_friendly_name()
                if (made := node.get_type_name()) != kind:
                    still = made in WEIGHTED and (rule.phase is not Phase.RELAXED or is_relaxed(node))
                    later = rules[rules.index(rule) + 1 :] if still else []
                    return self._follow([each for each in later if made in each.operations], node, made, rules)
                read = node.input_values()
        return node, kind

    def _record(self, rule: Rule, changed: Iterable[Node]) -> None:
        for node in changed:
            self._add(rule, node.get_type_name(), node.get_friendly_name())

    def _add(self, rule: Rule, operation: str, node: str) -> None:
        """The event, of the node by the name that it had in the model that was given."""
        name = given(node)
        self.trace.add(Outcome.LOWERED, rule.name, operation, name, Reason("lowered", rule.defect))
