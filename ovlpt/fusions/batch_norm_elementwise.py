"""BatchNormInference + Multiply, BatchNormInference + Add."""

from __future__ import annotations

import numpy as np

from ovlpt.fusions.channelwise import (
    Path,
    affine_of,
    batch_norm_inputs,
    batch_norm_port,
    constant_port,
    data_of,
    path_above,
)
from ovlpt.fusions.evaluation import evaluate
from ovlpt.fusions.fusion import Fusion, forget_names, take_over
from ovlpt.graph.constants import constant, precision_of
from ovlpt.openvino_api import Node
from ovlpt.trace import reject_unless


def _normalized_axis(node: Node) -> int | None:
    return 1 if node.get_type_name() == "BatchNormInference" else None


class _BatchNormElementwiseFusion(Fusion):
    """``(gamma n + beta) * m + a == (gamma m) n + (beta m + a)``; Transposes may lie between."""

    def path(self, node: Node) -> Path | None:
        if constant_port(node) is None:
            return None
        return path_above(data_of(node), _normalized_axis, frozenset())

    def concerns(self, node: Node) -> bool:
        return self.path(node) is not None

    def can_be_transformed(self, node: Node) -> None:
        path = self.path(node)
        path.check_unshared()
        affine_of(node, path.last_axis)
        inputs = batch_norm_inputs(path.source)
        for name in ("gamma", "beta"):
            reject_unless(evaluate(inputs[name]) is not None, "not_constant", f"the {name} is not a constant")

    def transform(self, node: Node) -> None:
        path = self.path(node)
        affine, inputs = affine_of(node, path.last_axis), batch_norm_inputs(path.source)
        gamma, beta = evaluate(inputs["gamma"]), evaluate(inputs["beta"])
        for name, values in (("gamma", gamma * affine.scale), ("beta", beta * affine.scale + affine.offset)):
            new = constant(np.broadcast_to(values, gamma.shape), precision_of(inputs[name]))
            path.source.input(batch_norm_port(path.source, name)).replace_source_output(new.output(0))
        for touched in (path.source, *path.nodes):
            forget_names(touched.output(0))
        take_over(node.output(0), data_of(node))


class BatchNormMultiplyFusion(_BatchNormElementwiseFusion):
    """A factor per channel after a normalization is folded into its gamma and beta."""

    operations = ("opset1.Multiply", "opset1.Divide")


class BatchNormAddFusion(_BatchNormElementwiseFusion):
    """An offset per channel after a normalization is folded into its beta."""

    operations = ("opset1.Add", "opset1.Subtract")
