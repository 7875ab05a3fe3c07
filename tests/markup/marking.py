"""What tests of markup share."""

from __future__ import annotations

import ovlpt
from ovlpt.graph.text import to_text
from tests.conftest import run_pass

U8 = ovlpt.PrecisionsRestriction.create("Convolution", {0: ["u8"], 1: ["i8"]})
I8 = ovlpt.PrecisionsRestriction.create("Convolution", {0: ["i8"], 1: ["i8"]})


def the(graph, kind: str):
    return next(node for node in graph.get_ops() if node.get_type_name() == kind)


def run(graph, passes: ovlpt.PassConfig, restriction=I8):
    trace = ovlpt.Trace()
    run_pass(graph, ovlpt.LowPrecision([restriction], pass_config=passes, trace=trace))
    return to_text(graph), trace
