from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import ovlpt
from tests.graphs import model, opset1, parameter


class Quick:
    """An infer request whose layers take less than a microsecond but in the first inference."""

    def __init__(self, request):
        self._request, self._count = request, 0

    def infer(self, inputs):
        self._request.infer(inputs)
        self._count += 1

    @property
    def profiling_info(self):
        status = "Status.EXECUTED" if self._count == 1 else "Status.NOT_RUN"
        fields = ("node_name", "node_type", "exec_type", "real_time", "cpu_time")
        return [
            SimpleNamespace(status=status, **{field: getattr(info, field) for field in fields})
            for info in self._request.profiling_info
        ]


def test_a_layer_that_ran_once_has_run(core):
    """A plugin says of a layer with a mean below a microsecond that it did not run."""
    graph = model(opset1.sigmoid(parameter((1, 3, 4, 4))))
    compiled = core.compile_model(graph, "CPU", {"PERF_COUNT": True})
    quick = SimpleNamespace(
        create_infer_request=lambda: Quick(compiled.create_infer_request()),
        get_property=compiled.get_property,
        get_runtime_model=compiled.get_runtime_model,
        inputs=compiled.inputs,
    )
    layers = ovlpt.execution_types(quick, [np.zeros((1, 3, 4, 4), np.float32)])
    assert [layer.status for layer in layers if layer.layer_type not in ("Input", "Output")] == ["EXECUTED"]
