"""What a compiled model executed: one record per layer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ovlpt.device.layer_types import BOUNDARY, PASS_ON
from ovlpt.device.states import anew
from ovlpt.display import html_table, to_frame
from ovlpt.openvino_api import CompiledModel, Tensor
from ovlpt.trace import InputError

CONSTANT = "CONSTANT"  # status of a constant, and of what reads constants only: computed while the model is compiled
_EXECUTED, _NOT_RUN = "EXECUTED", "NOT_RUN"
_KNOWN_TO = 0.1  # of itself, at worst, a mean that is taken for a layer's time
_SECONDS = 0.02  # for each run of those that are wanted; slow networks run less often
_COPY = 10  # microseconds; below, it is chance whether a layer that passes memory on was measured
_MAY_MOVE_NOTHING = frozenset(("", "undef", "unknown", "reorder"))  # kernels of layers that are often done in place


@dataclass(frozen=True, slots=True)
class LayerExecution:
    """One layer: a row of the performance counters joined with its node of the execution graph."""

    name: str
    layer_type: str
    status: str  # EXECUTED, NOT_RUN (fused or removed), OPTIMIZED_OUT, CONSTANT; "" of others without counters
    exec_type: str  # the kernel: brgconv_avx512_I8; "undef" where the layer is part of another
    precision: str  # of the data that the layer reads: u8
    output_precision: str
    real_time: float  # milliseconds
    cpu_time: float  # milliseconds
    original_names: tuple[str, ...]  # operations of the model that the layer holds
    counter_type: str = ""  # the type in benchmark_app's counters: Add, where the layer is an Eltwise

    @property
    def is_int8(self) -> bool:
        """Whether the kernel computes on 8-bit data.

        The kernel's name decides, by its last part (brgconv_avx512_I8, ref_i8): the precision field alone can lie.
        """
        return self.layer_type not in BOUNDARY and self.exec_type.lower().rsplit("_", 1)[-1] in ("i8", "u8")

    @property
    def is_executed(self) -> bool:
        """Whether it ran as a layer of its own; without counters, whether it computes anything."""
        return self.status == _EXECUTED if self.status else self.layer_type not in BOUNDARY


class ExecutionTypes(Sequence[LayerExecution]):
    """The layers of a compiled model in order of execution, fused ones included where counters were read."""

    def __init__(self, layers: Sequence[LayerExecution]):
        self._layers = tuple(layers)

    def __getitem__(self, index):
        return self._layers[index]

    def __len__(self) -> int:
        return len(self._layers)

    def __iter__(self) -> Iterator[LayerExecution]:
        return iter(self._layers)

    @property
    def executed(self) -> list[LayerExecution]:
        """The layers that ran."""
        return [layer for layer in self._layers if layer.is_executed]

    def summary(self) -> dict[str, tuple[int, int]]:
        """Per type of executed layer: (number, of them in int8)."""
        total = Counter(layer.layer_type for layer in self.executed)
        low = Counter(layer.layer_type for layer in self.executed if layer.is_int8)
        return {kind: (count, low[kind]) for kind, count in sorted(total.items())}

    def table(self) -> str:
        """benchmark_app's detailed counters as text, names whole: which layer EXECUTED in which kernel, which was
        NOT_RUN since it is part of another, and how long it took. Raises `InputError` where nothing was counted.
        """
        if all(each.status in ("", CONSTANT) for each in self._layers):
            raise InputError(
                'no layer was profiled; compile the model with {"PERF_COUNT": True}, and give inputs if its sizes are dynamic'
            )
        rows = [("layerName", "execStatus", "layerType", "execType", "realTime (ms)", "cpuTime (ms)")]
        for each in self._layers:
            if each.status not in ("", CONSTANT):
                what = each.name, each.status, each.counter_type or each.layer_type, each.exec_type
                rows.append((*what, f"{each.real_time:.3f}", f"{each.cpu_time:.3f}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                text.rjust(width) if place >= 4 else text.ljust(width)
                for place, (text, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )

    def to_frame(self):
        """The layers, fused ones included, as a pandas DataFrame. Raises `InputError` without pandas."""
        columns = [column.name for column in fields(LayerExecution)]
        rows = [[*(getattr(layer, column) for column in columns), layer.is_int8] for layer in self._layers]
        return to_frame([*columns, "is_int8"], rows)

    def _repr_html_(self) -> str:
        executed = self.executed
        rows = [
            (layer.name, layer.layer_type, layer.exec_type, layer.precision, layer.output_precision, layer.real_time)
            for layer in executed
        ]
        low = sum(layer.is_int8 for layer in executed)
        text = f"{low} of {len(executed)} layers ran in int8, {self.int8_time_share:.0%} of the time"
        return html_table(("layer", "type", "exec type", "in", "out", "real ms"), rows, text)

    @property
    def int8_time_share(self) -> float:
        """Part of the layers' real time spent in int8 kernels, 0 to 1; 0 without times."""
        total = sum(layer.real_time for layer in self._layers)
        return sum(layer.real_time for layer in self._layers if layer.is_int8) / total if total else 0.0


def execution_types(
    compiled: CompiledModel,
    inputs: Mapping[str | int, np.ndarray] | Sequence[np.ndarray] | None = None,
    runs: int = 10,
) -> ExecutionTypes:
    """One record per layer of ``compiled``.

    With ``inputs`` the model is run first, up to ``runs`` times; statuses and times need a model compiled with
    ``PERF_COUNT``. Such a model runs on zeros if no inputs are given and its sizes are fixed. On a CPU ``real_time`` is
    that of the runs in which a layer was fastest, if the model was not run before (`least_times`); ``cpu_time`` is a mean.
    Raises `InputError` for inputs that do not fit the model.
    """
    inputs = _zeros(compiled) if inputs is None else inputs
    counters, ran, least = _counters(compiled, inputs, runs) if inputs is not None else ({}, set(), {})
    layers: list[LayerExecution] = []
    constants: set[str] = set()
    for node in compiled.get_runtime_model().get_ordered_ops():
        runtime = node.get_rt_info()
        info = {key: _text(runtime[key]) for key in _KEYS if key in runtime}
        sources = {value.get_node().get_friendly_name() for value in node.input_values()}
        if info.get("layerType") == "Const" or (sources and sources <= constants):
            constants.add(node.get_friendly_name())
        counter = counters.pop(node.get_friendly_name(), None)
        layer_type = info.get("layerType", node.get_type_name())
        if counter is not None and layer_type not in BOUNDARY and _has_kernel(counter):
            ran.add(counter.node_name)
        layers.append(
            LayerExecution(
                name=node.get_friendly_name(),
                layer_type=layer_type,
                status=CONSTANT if node.get_friendly_name() in constants else _status(counter, ran),
                exec_type=info.get("primitiveType", "") if counter is None else counter.exec_type,
                precision=info.get("runtimePrecision", "").lower(),
                output_precision=info.get("outputPrecisions", "").lower(),
                real_time=least.get(node.get_friendly_name(), _milliseconds(counter, "real_time")),
                cpu_time=_milliseconds(counter, "cpu_time"),
                original_names=tuple(item for item in info.get("originalLayersNames", "").split(",") if item),
                counter_type="" if counter is None else counter.node_type,
            )
        )
    for name, counter in counters.items():  # layers that are part of another
        times = _milliseconds(counter, "real_time"), _milliseconds(counter, "cpu_time")
        layers.append(
            LayerExecution(name, counter.node_type, _status(counter, ran), counter.exec_type, "", "", *times, (name,))
        )
    return ExecutionTypes(layers)


# Inputs of dynamic sizes, which later requests of a model have, too, and copy theirs into: kept to the end, as nobody knows when
# the last of these requests is gone.
_kept: list[Tensor] = []

_KEYS = ("layerType", "primitiveType", "runtimePrecision", "outputPrecisions", "originalLayersNames")


def _zeros(compiled: CompiledModel) -> list[np.ndarray] | None:
    """Inputs of a model that counts and has fixed sizes; None of another."""
    with suppress(InputError):
        if _counts(compiled) and not any(port.get_partial_shape().is_dynamic for port in compiled.inputs):
            return [np.zeros(list(port.shape), port.get_element_type().to_dtype()) for port in compiled.inputs]
    return None


def _counts(compiled: CompiledModel) -> bool:
    try:
        return str(compiled.get_property("PERF_COUNT")) in ("True", "YES")
    except RuntimeError as error:
        raise InputError(
            "the device does not report how long layers take (HETERO does not); name one of the devices that it combines"
        ) from error


def _counters(
    compiled: CompiledModel, inputs: Mapping | Sequence, runs: int
) -> tuple[dict[str, Any], set[str], dict[str, float]]:
    """The counters of all layers by their names, the names of those that ran, and milliseconds of `least_times`.

    A plugin says so of layers with a mean time of a microsecond or more, which most take in the first inference. Those that
    only pass memory on may take it there, too: a Reshape ran if it took as long as a copy that counts in all inferences.
    """
    request = compiled.create_infer_request()
    infer, counted = anew(request, inputs), _counts(compiled)  # else every layer is said to be NOT_RUN
    are_means = counted and _on_cpu(compiled) and not any(map(_microseconds, request.profiling_info))
    readings: list[list[Any]] = []
    try:
        end = time.perf_counter() + _SECONDS * runs
        while not readings or (len(readings) < runs and time.perf_counter() < end):
            infer()
            readings.append(request.profiling_info if counted else [])
    except (RuntimeError, ValueError, KeyError, TypeError) as error:
        expected = ", ".join(
            f"{port.get_element_type().get_type_name()}{port.get_partial_shape()}" for port in compiled.inputs
        )
        raise InputError(f"the inputs do not fit the model, which takes {expected}: {last_line(error)}") from error
    finally:
        dynamic = [port for port in request.model_inputs if port.get_partial_shape().is_dynamic]
        _kept.extend(request.get_tensor(port) for port in dynamic)
    infos, last = [*readings[0], *readings[-1]], {info.node_name: info for info in readings[-1]}
    idle = {
        info.node_name for reading in readings for info in reading if _passes_on(info) and _microseconds(info) < _COPY
    }
    means = [{info.node_name: _microseconds(info) for info in reading} for reading in readings]
    return (
        last,
        {info.node_name for info in infos if _status(info) == _EXECUTED and info.node_name not in idle},
        least_times(means) if are_means else {},
    )


def least_times(means: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """Milliseconds of each layer: the least mean over inferences in a row, as other work makes a layer slower, never faster.

    ``means``: after each inference, over all so far, in whole microseconds, as the CPU plugin counts. What they cut off
    leaves the mean over a span open by a number that is small where the span is long or begins early. Of the spans whose
    mean is known to a tenth, and the whole, the one is taken whose upper bound is least.
    """
    names = list(means[-1])
    totals = [np.zeros(len(names))]
    totals += [(np.array([each[name] for name in names]) + 0.5) * count for count, each in enumerate(means, 1)]
    found, bound = np.zeros(len(names)), np.full(len(names), np.inf)
    for last in range(1, len(totals)):
        for first in range(last):
            count = last - first
            mean, open_by = (totals[last] - totals[first]) / count, (last + first) / (2 * count)
            is_whole = first == 0 and last == len(totals) - 1
            is_less = (mean + open_by < bound) & ((open_by <= _KNOWN_TO * mean) | is_whole)
            found, bound = np.where(is_less, mean, found), np.where(is_less, mean + open_by, bound)
    measured = np.array([means[-1][name] for name in names]) > 0
    return dict(zip(names, (np.maximum(found, 0.0) * measured / 1e3).tolist(), strict=True))


def _microseconds(counter: Any) -> int:
    return round(counter.real_time.total_seconds() * 1e6)


def _on_cpu(compiled: CompiledModel) -> bool:
    """Whether counters are means over all inferences; those of other plugins are of the last one."""
    return list(compiled.get_property("EXECUTION_DEVICES")) == ["CPU"]


def last_line(error: Exception | str) -> str:
    """The last non-empty line of an exception's text: where OpenVINO says what is wrong."""
    return next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)


def _text(value: object) -> str:
    return str(value.astype(str)) if hasattr(value, "astype") else str(value)


def _passes_on(counter: Any) -> bool:
    return counter.node_type in PASS_ON and not _has_kernel(counter)


def _has_kernel(counter: Any) -> bool:
    """Whether a layer of the execution graph names a kernel that runs in each inference, however short it is."""
    return counter.exec_type.lower().partition("_")[0] not in _MAY_MOVE_NOTHING


def _status(counter: Any, ran: Container[str] | None = None) -> str:
    """As the plugin says, or by what ``ran`` where that is known."""
    if counter is None:
        return ""
    status = str(counter.status).rsplit(".", 1)[-1]
    if ran is None:
        return status
    return _EXECUTED if counter.node_name in ran else _NOT_RUN if status == _EXECUTED else status


def _milliseconds(counter: Any, field: str) -> float:
    return 0.0 if counter is None else getattr(counter, field).total_seconds() * 1e3
