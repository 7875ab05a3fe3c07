"""Which formula explains which runtime: the outputs that each gets wrong, for each kind of weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from unittest import mock

import numpy as np

from ovlpt.reference import weighted
from ovlpt.reference.requantization import RULES
from tools.quantized_operators.cases import Case
from tools.quantized_operators.kernels import compute

WEIGHTED = ("Convolution", "Deconvolution", "InnerProduct")
# SNPS-Caffe's document: scale granularity × group → its formula, and the recorded kinds of weights that it is about
DOCUMENT = {
    ("PerTensor", "1"): ("D2", "normal"),
    ("PerTensor", "Depthwise"): ("F2", "depthwise"),
    ("PerTensor", "Pointwise"): ("F2", "pointwise"),
    ("PerChannel", "1"): ("D1", "normal"),
    ("PerChannel", "Depthwise"): ("D2", "depthwise"),
    ("PerChannel", "Pointwise"): ("D1", "pointwise"),
}

Pairs = Iterable[tuple[Case, np.ndarray | str | None]]


def mismatches(method: str, pairs: Pairs) -> dict[str, dict[str, int]]:
    """Kind of weights → formula → outputs that differ from the runtime's; "of" is how many were compared."""
    kinds: dict[str, dict[str, int]] = {}
    for case, answer in pairs:
        if case.operator not in WEIGHTED or not isinstance(answer, np.ndarray):
            continue
        kind = " ".join([*case.name.split()[1:5], *(["single"] if case.name.endswith("single") else [])])
        counts = kinds.setdefault(kind, dict.fromkeys((*RULES, "of"), 0))
        counts["of"] += answer.size
        for rule in RULES:
            with mock.patch.object(weighted, "weighted_rule", lambda *_, rule=rule, **__: rule):
                counts[rule] += int((compute(case, method) != answer).sum())
    return kinds


def matrix(found: Mapping[str, Mapping[str, int]]) -> str:
    """The document's matrix, each cell with its formula and the outputs of TensorFlow 2.5 that it gets wrong, and with the
    formulas that get none wrong.
    """
    lines = ["| scales × group | document | weights | wrong | exact |", "| --- | --- | --- | --- | --- |"]
    for (granularity, group), (rule, kind) in DOCUMENT.items():
        for precision in ("u8u8", "i8i8"):
            counts = found.get(f"{kind} {precision} per {granularity.removeprefix('Per').lower()}")
            if counts is not None:
                exact = ", ".join(name for name in RULES if not counts[name]) or "none"
                wrong = f"{counts[rule]:,} of {counts['of']:,}"
                lines.append(f"| {granularity} × {group} | `{rule}` | {precision[:2]} | {wrong} | {exact} |")
    return "\n".join(lines)


def table(found: Mapping[str, Mapping[str, Mapping[str, int]]]) -> str:
    """Method, kind of weights and the mismatches of each formula; what explains all outputs has a star."""
    lines = [f"{'method':17} {'weights':32} {'outputs':>9}" + "".join(f"{rule:>9}" for rule in RULES)]
    for method, kinds in found.items():
        for kind, counts in kinds.items():
            cells = "".join(f"{'0 *' if not counts[rule] else counts[rule]:>9}" for rule in RULES)
            lines.append(f"{method:17} {kind:32} {counts['of']:>9}{cells}")
    return "\n".join(lines)
