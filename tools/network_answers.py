"""Whether the answers of `ovlpt.explain` are true on networks, and whether their advices work there.

    python -m tools.network_answers zoo/bert.xml zoo/vit.xml …      files whose name ends with _float are left out

For each layer with weights: the answer is true when it says what the layer was executed in, read from the execution
graph of another compilation; "low" or the reasons for float. All advices of a network are applied at once, with ranges of
generated data: an advice works when its layer is executed in int8 after that. A layer that no advice is given for needs a
reason that no quantization changes. All of it holds with floats in f32 and in the CPU's default type. Failures come first;
exit status 1 with any.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ovlpt
from ovlpt.device.compile import float_types, lpt_properties
from ovlpt.device.properties import UNCACHED
from ovlpt.graph.bodies import all_nodes, bodies_of
from ovlpt.inspect.advice import in_order
from ovlpt.inspect.calibration import calibrate
from ovlpt.inspect.executed import has_weights
from ovlpt.inspect.explain.answers import Answer, Explanation, Operation
from ovlpt.inspect.inputs import typical_inputs
from ovlpt.openvino_api import Core, Model, Node
from ovlpt.reasons import ROWS, Cause
from ovlpt.trace import InputError
from tools.answers import FLOAT, INT8, PARTLY, kernels

_FINAL = frozenset(
    ("constant_data", "dynamic_scales", "no_rule", "no_kernel", "not_real", "pairs_saturate")
)  # what no quantization changes


@dataclass(frozen=True)
class Layer:
    """One layer with weights of one network. ``executed``: values of `tools.answers.kernels`, with each type of floats.
    ``works``: whether the advices made it int8; None without any.
    """

    network: str
    operation: Operation
    executed: tuple[str, ...]
    works: bool | None

    @property
    def answer(self) -> Answer | None:
        return self.operation.answer

    @property
    def is_true(self) -> bool:
        """Which MatMul of an attention in one kernel is in int8 cannot be read: both answers are accepted then."""
        if self.answer is None:
            return FLOAT not in self.executed
        return INT8 not in self.executed and bool(self.answer.causes)

    @property
    def is_final(self) -> bool:
        """Whether the answer says that nothing can be done."""
        codes = {cause.reason.code for cause in self.answer.causes}
        return self.works is None and all(
            code in _FINAL or ROWS[code].cause in (Cause.SETTINGS, Cause.HARDWARE) for code in codes
        )

    @property
    def is_advised(self) -> bool:
        return self.answer is None or self.works is True or self.is_final

    @property
    def fault(self) -> str:
        return " and ".join(["not true"] * (not self.is_true) + ["no working advice"] * (not self.is_advised))

    def __str__(self) -> str:
        said = f"{self.answer.why} -> {self.answer.help}" if self.answer else "int8"
        return (
            f"{self.network}: {self.fault}: {self.operation.kind} {self.operation.name} "
            f"[{self.operation.node}] runs in {' and '.join(dict.fromkeys(self.executed))}; said {said}"
        )


def judge(path: Path, core: Core) -> list[Layer]:
    """The layers of one network. Raises `InputError` for a model that `ovlpt.explain` does not take."""
    model = core.read_model(path)
    return judged(model, typical_inputs(model), label(path), core)


def judged(model: Model, sample: Sequence[np.ndarray], network: str, core: Core) -> list[Layer]:
    """The layers of a model, to which its advices are applied. ``sample``: what their ranges are taken from."""
    weighted = _weighted(ovlpt.explain(model, core=core))
    given = {node.get_friendly_name(): node for node in all_nodes(model)}
    names = {name: _names(each, given) for name, each in weighted.items()}
    before, after, still = _kernels(model, core), [], {}
    advices = in_order(advice for each in weighted.values() if each.answer for advice in each.answer.advices)
    if advices:
        ranges = calibrate(model, advices, [sample], core)
        for advice in advices:
            try:
                advice.apply(model, ranges)
            except InputError as error:
                print(f"{network}: cannot be applied: {advice}: {error}")
        after, still = _kernels(model, core), _weighted(ovlpt.explain(model, core=core))

    def works(name: str) -> bool | None:
        if weighted[name].answer is None or not weighted[name].answer.advices:
            return None
        enough = (INT8, PARTLY) if name in still and still[name].answer is None else (INT8,)
        return bool(after) and all(state in enough for state in _states(names[name], after))

    return [Layer(network, each, _states(names[name], before), works(name)) for name, each in weighted.items()]


def label(path: Path) -> str:
    """With its folder, after which a pretrained network is called."""
    return f"{path.parent.name}/{path.stem}"


def _weighted(found: Explanation) -> dict[str, Operation]:
    """The layers with weights by their names; of both MatMuls of an attention, the one in float."""
    weighted: dict[str, Operation] = {}
    for each in found.operations:
        if has_weights(each.kind) and (each.name not in weighted or each.answer is not None):
            weighted[each.name] = each
    return weighted


def _names(operation: Operation, given: Mapping[str, Node]) -> list[str]:
    """What the layer can be called after: the operation, or the scale, the bias or the activation that it executes."""
    names, node = [operation.name, operation.node], given.get(operation.name)
    if node is not None and node.get_type_name() == "Einsum":  # whose name what follows the MatMul has
        names.reverse()
    while node is not None and len(names) < 8:
        readers = [target.get_node() for output in node.outputs() for target in output.get_target_inputs()]
        readers = [reader for reader in readers if reader.get_type_name() != "ShapeOf"]
        ends = len(readers) != 1 or (has_weights(readers[0].get_type_name()) and node.get_type_name() != "Softmax")
        node = None if ends else readers[0]  # of an attention in one kernel, the second MatMul as well
        names += [node.get_friendly_name()] if node is not None else []
    return names


def _states(names: Sequence[str], kernels_of: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """With each type of floats, what the first of the names that a layer has is executed in."""
    return tuple(next((found[name] for name in names if name in found), FLOAT) for found in kernels_of)


def _kernels(model: Model, core: Core) -> list[dict[str, str]]:
    """With each type of floats."""
    return [_kernels_with(floats, model, core) for floats in float_types(core)]


def _kernels_with(floats: str, model: Model, core: Core) -> dict[str, str]:
    """Of the model, and of each body, which the execution graph does not show."""
    found, properties = {}, {"INFERENCE_PRECISION_HINT": floats, **UNCACHED}
    if any(True for node in all_nodes(model) for _ in bodies_of(node)):
        ready = ovlpt.transform(model, core=core)
        for node in all_nodes(ready):
            for body in bodies_of(node):
                found |= kernels(core.compile_model(body.clone(), "CPU", properties | lpt_properties(ready, "CPU")))
    return found | kernels(ovlpt.compile_model(model, "CPU", properties, core=core))


def main(arguments: Sequence[str]) -> int:
    core, layers = Core(), []
    paths = [path for path in map(Path, arguments) if not path.stem.endswith("_float")]
    if absent := [str(path) for path in paths if not path.exists()]:
        print(f"not found: {', '.join(absent)}; name networks that are there", file=sys.stderr)
        return 2
    for path in paths:
        try:
            layers += judge(path, core)
        except InputError as error:
            print(f"{label(path)}: {error}", file=sys.stderr)
            return 2
        print(label(path), len(layers), file=sys.stderr)
    floats = [each for each in layers if each.answer is not None]
    missed = [each for each in layers if not each.is_true or not each.is_advised]
    print("\n".join(map(str, missed)))
    true, advised = sum(each.is_true for each in layers), sum(each.is_advised for each in floats)
    print(f"{len(layers)} layers with weights, {len(floats)} of them in float")
    print(f"{true} answers are true ({true / max(len(layers), 1):.1%})")
    part = f" ({advised / len(floats):.1%})" if floats else ""
    print(f"{advised} float layers are int8 once advised, or nothing can be done{part}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
