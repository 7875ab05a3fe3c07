"""What is said of an operation, and of a whole model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING

from ovlpt.device.overflow import OverflowRisk
from ovlpt.display import html_table, to_frame
from ovlpt.inspect.advice import Advice, in_order
from ovlpt.inspect.executed import has_weights
from ovlpt.reasons import ROWS
from ovlpt.trace import InputError, Reason

if TYPE_CHECKING:
    from ovlpt.device.hazards import Hazard


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause. ``root``: type and name of the operation whose condition decides."""

    reason: Reason
    root: str
    advice: Advice | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One operation that is not in low precision, and why. Names are those of the model that was given."""

    operation: str
    name: str
    reason: Reason
    upstream: tuple[str, ...]  # from the operation up to where the quantization was lost
    help: str | None  # what would change it
    quantizable: bool  # an operation with weights and a quantization above its data
    root: str  # the operation whose condition decides: itself, or one above or below it
    root_reason: Reason  # that condition
    node: str = ""  # the operation's name in the transformed model
    layer: str | None = None  # kernel and type with which it was executed; None where that is not known
    part_of: str | None = None  # the layer with weights that it was executed as a part of
    causes: tuple[Finding, ...] = ()  # of an operation with weights: all of them, the one of ``reason`` first

    @property
    def advices(self) -> list[Advice]:
        """What would turn an operation with weights into int8, to be applied in this order; empty if nothing is known to."""
        return in_order(finding.advice for finding in self.causes if finding.advice is not None)

    @property
    def why(self) -> str:
        """All causes in one line."""
        return "; and ".join(dict.fromkeys(finding.reason.text for finding in self.causes)) or self.reason.text

    def to_json(self) -> dict[str, object]:
        fields = {field.name: getattr(self, field.name) for field in dataclass_fields(self)}
        reasons = {key: asdict(fields[key]) for key in ("reason", "root_reason")}
        causes = [
            {"reason": asdict(each.reason), "root": each.root, "advice": str(each.advice) if each.advice else None}
            for each in self.causes
        ]
        return {**fields, **reasons, "upstream": list(self.upstream), "causes": causes}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the transformed model; without an ``answer`` it is in low precision."""

    kind: str
    node: str
    name: str
    answer: Answer | None


class Explanation(Sequence[Answer]):
    """The answers for one model, operations with weights first. ``executed``: they follow the compiled model; else the graph."""

    def __init__(
        self,
        operations: Sequence[Operation],
        hazards: Sequence[Hazard] = (),
        overflow_risks: Sequence[OverflowRisk] = (),
        executed: bool = False,
    ):
        self.operations, self.executed = list(operations), executed
        self._answers = sorted(
            (each.answer for each in operations if each.answer), key=lambda answer: not has_weights(answer.operation)
        )
        self.hazards = list(hazards)  # layers whose numbers the plugin changes
        self.overflow_risks = list(overflow_risks)  # layers that can overflow on CPUs without VNNI
        low = [each for each in operations if each.answer is None]
        # name to operation, of those in low precision; names of the given and of the transformed model
        self.low_names = {each.name: each.kind for each in low} | {each.node: each.kind for each in low}
        self.low, self.total = Counter(each.kind for each in low), Counter(each.kind for each in operations)

    def __getitem__(self, index):
        return self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    def summary(self) -> dict[str, tuple[int, int]]:
        """Per operation: (number, of them in low precision)."""
        return {kind: (count, self.low[kind]) for kind, count in sorted(self.total.items())}

    def to_json(self) -> dict[str, object]:
        """Plain values for a file."""
        return {
            "headline": self.headline,
            "executed": self.executed,
            "summary": {kind: {"total": total, "int8": low} for kind, (total, low) in self.summary().items()},
            "answers": [answer.to_json() for answer in self],
            "hazards": [hazard.to_json() for hazard in self.hazards],
            "overflow_risks": [risk.to_json() for risk in self.overflow_risks],
        }

    @property
    def headline(self) -> str:
        """The answer in one sentence: how many layers with weights run in int8."""
        weighted = [each for each in self.operations if has_weights(each.kind)]
        low, total = sum(each.answer is None for each in weighted), len(weighted)
        if not total:
            return "there are no layers with weights"
        layers = "layer" if total == 1 else "layers"
        if self.executed:
            return f"{low} of {total} {layers} with weights {'runs' if total == 1 else 'run'} in int8"
        return f"{low} of {total} {layers} with weights can run in int8 as far as the graph says; nothing was compiled"

    def to_frame(self):
        """The answers as a pandas DataFrame. Raises `InputError` without pandas."""
        return to_frame(*self._rows())

    def _repr_html_(self) -> str:
        return html_table(*self._rows(), caption=self.headline)

    def _rows(self) -> tuple[Sequence[str], list[Sequence[object]]]:
        return ("operation", "name", "why", "what would help"), [
            (answer.operation, answer.name, answer.why, answer.help or "") for answer in self
        ]

    @property
    def quantizable(self) -> list[Answer]:
        """Operations with weights that stay in float although something above them is quantized."""
        return [answer for answer in self if answer.quantizable]

    @property
    def layers(self) -> list[Answer]:
        """The answers without those for operations that are fused into a layer with weights: biases, activations."""
        return [answer for answer in self if answer.part_of is None and not ROWS[answer.reason.code].incidental]

    def groups(self) -> list[list[Answer]]:
        """The answers for layers with weights, grouped by cause, the largest group first."""
        groups: dict[tuple[str, ...], list[Answer]] = {}
        for answer in self:
            if has_weights(answer.operation):
                codes = ",".join(each.reason.code for each in answer.causes)
                key = answer.operation, answer.root.split(" ", 1)[0], answer.root_reason.code, codes
                groups.setdefault(key, []).append(answer)
        return sorted(groups.values(), key=lambda group: -len(group))

    def of(self, name: str) -> Answer | None:
        """The answer for one operation; None when it is in low precision. Raises `InputError` for an unknown name."""
        found = next((answer for answer in self if name in (answer.name, answer.node)), None)
        if found is None and name not in self.low_names:
            from difflib import get_close_matches  # here, not above: for sentences about mistakes only

            near = get_close_matches(name, [*self.low_names, *(answer.name for answer in self)], 1)
            hint = (
                f'; did you mean "{near[0]}"?'
                if near
                else "; without --layer all that are not in low precision are listed"
            )
            raise InputError(f'no operation "{name}" in the transformed model{hint}')
        return found
