"""What a compiled model executed: one record per layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ovlpt.openvino_api import CompiledModel


@dataclass(frozen=True, slots=True)
class LayerExecution:
    """One executed layer: the seeds' performance counters joined with the execution graph."""

    name: str
    layer_type: str
    status: str  # EXECUTED, NOT_RUN, OPTIMIZED_OUT, or "" where the model was not run with counters
    exec_type: str  # the kernel: brgconv_avx512_I8
    precision: str  # of the data that the layer reads: u8
    output_precision: str
    real_time: float  # milliseconds
    cpu_time: float  # milliseconds
    original_names: tuple[str, ...]  # operations of the model that the layer holds

    @property
    def is_int8(self) -> bool:
        """Whether the kernel computes in 8 bits. The precision field alone can lie, so the kernel's name decides.

        Kernels spell it at the end (brgconv_avx512_I8, ref_i8); layers that are no kernel say undef.
        """
        return self.exec_type.lower().rsplit("_", 1)[-1] in ("i8", "u8")


class ExecutionTypes(Sequence[LayerExecution]):
    """The layers of a compiled model in order of execution."""

    def __init__(self, layers: Sequence[LayerExecution]):
        self._layers = tuple(layers)

    def __getitem__(self, index):
        return self._layers[index]

    def __len__(self) -> int:
        return len(self._layers)

    def __iter__(self) -> Iterator[LayerExecution]:
        return iter(self._layers)

    def summary(self) -> dict[str, tuple[int, int]]:
        """Per layer type: (layers, of them in int8)."""
        counts: dict[str, tuple[int, int]] = {}
        for layer in self._layers:
            total, low = counts.get(layer.layer_type, (0, 0))
            counts[layer.layer_type] = (total + 1, low + layer.is_int8)
        return counts


def execution_types(
    compiled: CompiledModel, inputs: Mapping[str | int, np.ndarray] | Sequence[np.ndarray] | None = None
) -> ExecutionTypes:
    """One record per layer of ``compiled``.

    With ``inputs`` the model is run once first; times need a model compiled with ``PERF_COUNT``.
    """
    request = compiled.create_infer_request()
    counters = {}
    if inputs is not None:
        request.infer(inputs)
    try:
        if inputs is not None:
            counters = {info.node_name: info for info in request.profiling_info}
    except RuntimeError:  # compiled without PERF_COUNT
        counters = {}
    layers = []
    for node in compiled.get_runtime_model().get_ordered_ops():
        info = {key: _text(node.get_rt_info()[key]) for key in _KEYS if key in node.get_rt_info()}
        name = node.get_friendly_name()
        counter = counters.get(name)
        layers.append(
            LayerExecution(
                name=name,
                layer_type=info.get("layerType", node.get_type_name()),
                status="" if counter is None else _status(counter),
                exec_type=info.get("primitiveType", "") if counter is None else counter.exec_type,
                precision=info.get("runtimePrecision", ""),
                output_precision=info.get("outputPrecisions", "").lower(),
                real_time=0.0 if counter is None else counter.real_time.total_seconds() * 1e3,
                cpu_time=0.0 if counter is None else counter.cpu_time.total_seconds() * 1e3,
                original_names=tuple(item for item in info.get("originalLayersNames", "").split(",") if item),
            )
        )
    return ExecutionTypes(layers)


_KEYS = ("layerType", "primitiveType", "runtimePrecision", "outputPrecisions", "originalLayersNames")


def _text(value: object) -> str:
    return str(value.astype(str)) if hasattr(value, "astype") else str(value)


def _status(counter: object) -> str:
    return str(counter.status).rsplit(".", 1)[-1]
