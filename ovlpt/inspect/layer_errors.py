"""The errors of each layer: of its own, and with all that went wrong above it (see `compare`)."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ovlpt.device import ExecutionTypes, execution_types
from ovlpt.graph.constants import constant_above, is_constant_path
from ovlpt.graph.consumers import targets_of
from ovlpt.graph.names import given
from ovlpt.inspect.noise import Noise
from ovlpt.inspect.run import relative_difference
from ovlpt.inspect.runs import ERRORS, FAKE_QUANTIZED, FLOAT, INT8, QUANTIZATION, TRANSFORMATION, Network, Runs
from ovlpt.inspect.segments import Segment, Segments, apart, observed, up_to
from ovlpt.openvino_api import Model, Output, opset1
from ovlpt.operations import WEIGHTED

_logger = logging.getLogger("ovlpt")


@dataclass(frozen=True)
class LayerErrors:
    """One layer. ``operations``: the names of what a quantizer quantizes in it. SQNR in dB by error; an error that
    could not be measured is missing.
    """

    name: str
    type: str
    operations: tuple[str, ...]
    local: dict[str, float]
    cumulative: dict[str, float]

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "type": self.type,
            "operations": list(self.operations),
            "local_sqnr_db": finite(self.local),
            "cumulative_sqnr_db": finite(self.cumulative),
        }


@dataclass
class LayerTotals:
    """The sums of one layer, by error."""

    name: str
    type: str
    operations: tuple[str, ...]
    local: defaultdict[str, Noise] = field(default_factory=lambda: defaultdict(Noise))
    cumulative: defaultdict[str, Noise] = field(default_factory=lambda: defaultdict(Noise))

    @classmethod
    def of(cls, segment: Segment) -> LayerTotals:
        named = segment.layers or segment.quantized or [segment.end.get_node()]
        return cls(
            ", ".join(node.get_friendly_name() for node in named),
            named[0].get_type_name(),
            tuple(node.get_friendly_name() for node in segment.quantized),
        )

    def merge(self, other: LayerTotals) -> None:
        """Add what was measured on other samples."""
        for mine, theirs in ((self.local, other.local), (self.cumulative, other.cumulative)):
            for error, noise in theirs.items():
                mine[error].merge(noise)

    def errors(self) -> LayerErrors:
        return LayerErrors(
            self.name,
            self.type,
            self.operations,
            {error: noise.sqnr for error, noise in self.local.items()},
            {error: noise.sqnr for error, noise in self.cumulative.items()},
        )


Values = list[np.ndarray | None]  # one per point; None: the run has no such value


def worst_first(layers: Sequence[LayerErrors]) -> tuple[LayerErrors, ...]:
    """By the local SQNR of the first error that was measured."""
    first = first_measured(layers)
    return tuple(sorted(layers, key=lambda layer: layer.local.get(first, math.inf)))


def first_measured(layers: Sequence[LayerErrors]) -> str:
    """The first error that a layer has."""
    return next((error for error in ERRORS if any(error in layer.local for layer in layers)), TRANSFORMATION)


def finite(values: Mapping[str, float]) -> dict[str, float | str]:
    """Plain values for a file; an infinite SQNR is the text "inf"."""
    return {name: value if math.isfinite(value) else str(value) for name, value in values.items()}


class Layers:
    """The errors of each layer, from networks that show more than their results."""

    def __init__(self, runs: Runs):
        self._runs, self._errors = runs, runs.layer_errors
        self._inside, self._overwritten = fused(runs.source, execution_types(runs.plain[INT8]))
        self._cut = Segments(runs.source, self._inside)
        self._places = [self._cut.place_of(segment.point) for segment in self._cut.segments]
        self._sources = [[self._cut.place_of(value) for value in each.sources] for each in self._cut.segments]
        self._readers = {run: self._reader(run) for error in self._errors for run in ERRORS[error]}
        self._alone = {
            error: Network(
                runs.compile[ERRORS[error][1]](apart(runs.source, self._inside, at_point=error != QUANTIZATION))
            )
            for error in self._errors
        }

    def totals(self) -> list[LayerTotals]:
        """The layers, with nothing measured yet."""
        return [LayerTotals.of(segment) for segment in self._cut.segments]

    def add(self, sample: Sequence[np.ndarray], results: Sequence[np.ndarray], totals: Sequence[LayerTotals]) -> float:
        """Measure the layers on one sample, whose int8 ``results`` are known, and add to ``totals``.

        Returns the largest relative difference of a result once layers are read.
        """
        found = {run: read(sample) for run, read in self._readers.items()}
        values = {run: points for run, (_, points) in found.items()}
        for error in self._errors:
            reference, examined = (values[run] for run in ERRORS[error])
            answers = self._alone[error]([*sample, *self._feeds(reference, values[FAKE_QUANTIZED])])
            for number, (place, answer) in enumerate(zip(self._places, answers, strict=True)):
                if reference[place] is None:
                    continue
                totals[number].cumulative[error].add(reference[place], examined[place])
                if all(reference[source] is not None for source in self._sources[number]):
                    totals[number].local[error].add(reference[place], answer)
        return relative_difference(found[INT8][0], results)

    def _feeds(self, reference: Values, quantized: Values) -> list[np.ndarray]:
        """What the layers alone read; where the reference has no value, one that no result is taken from."""
        size = len(self._cut.feeds)
        pairs = zip(reference[:size], quantized[:size], strict=True)
        return [other if value is None else value.astype(other.dtype) for value, other in pairs]

    def _reader(self, run: str) -> Callable[[Sequence[np.ndarray]], tuple[list[np.ndarray], Values]]:
        """From a sample to the network's results, and the values at its points."""
        if run == FLOAT:
            return self._float_reader()
        _logger.info("compiles the %s run with its layers as outputs", run)
        source, count = self._runs.source, len(self._runs.source.outputs)
        points = self._cut.points
        apart = [
            place
            for place, point in enumerate(points)
            if run != FAKE_QUANTIZED and point.get_node().get_friendly_name() in self._overwritten
        ]
        together = [place for place in range(len(points)) if place not in apart]
        network = Network(self._runs.compile[run](observed(source, self._inside, together)))
        shorter = {}
        for number, place in enumerate(apart, 1):
            _logger.info("compiles the %s run up to a layer, %d of %d", run, number, len(apart))
            shorter[place] = Network(self._runs.compile[run](up_to(source, self._inside, place)))

        def read(sample: Sequence[np.ndarray]) -> tuple[list[np.ndarray], Values]:
            found = network(sample)
            values = dict(zip(together, found[count:], strict=True))
            values |= {place: each(sample)[0] for place, each in shorter.items()}
            return found[:count], [values[place] for place in range(len(points))]

        return read

    def _float_reader(self) -> Callable[[Sequence[np.ndarray]], tuple[list[np.ndarray], Values]]:
        model = self._runs.original.clone()
        count = len(model.outputs)
        matches = [counterpart(point, model) for point in self._cut.points]
        model.add_results([opset1.result(match[0]) for match in matches if match])
        network = Network(self._runs.compile[FLOAT](model))

        def read(sample: Sequence[np.ndarray]) -> tuple[list[np.ndarray], Values]:
            found = network(sample)
            more = iter(found[count:])
            return found[:count], [next(more) * match[1] if match else None for match in matches]

        return read


def fused(model: Model, layers: ExecutionTypes) -> tuple[set[str], set[str]]:
    """What a compiled model does not store, by the names in its ``layers``: FakeQuantize operations that are computed
    in one kernel with what follows, and tensors that such a kernel adds its result to.
    """
    inside: set[str] = set()
    overwritten: set[str] = set()
    weighted = {node.get_friendly_name() for node in model.get_ops() if node.get_type_name() in WEIGHTED}
    kernels = [{given(name) for name in layer.original_names} for layer in layers]
    # a Subgraph of several MatMuls, which the CPU plugin makes of small ones, rounds between them as layers do
    kernels = [names for names in kernels if len(names & weighted) < 2]
    for node in model.get_ops():
        name, kind = node.get_friendly_name(), node.get_type_name()
        if kind not in ("FakeQuantize", "Add") or is_constant_path(node):
            continue
        kernel = next((names for names in kernels if name in names), set())
        if kind == "FakeQuantize":
            if any(target.get_node().get_friendly_name() in kernel for target in targets_of(node.output(0))):
                inside.add(name)
        else:
            summands = {value.get_node().get_friendly_name() for value in node.input_values()}
            if summands & kernel:
                overwritten |= summands - kernel
    return inside, overwritten


def counterpart(value: Output, model: Model) -> tuple[Output, np.ndarray | float] | None:
    """Where the float ``model`` has a value of the quantized one, and the factor that belongs to it; None: nowhere.

    See *Matching* at the top of the file.
    """
    others = {node.get_friendly_name(): node for node in model.get_ops()}
    factor: np.ndarray | float = 1.0
    while True:
        node = value.get_node()
        other = others.get(node.get_friendly_name())
        if other is not None:
            found = other.output(value.get_index()) if value.get_index() < other.get_output_size() else None
            fits = found is not None and found.get_partial_shape().compatible(value.get_partial_shape())
            return (found, factor) if fits else None
        read = [source for source in node.input_values() if not is_constant_path(source.get_node())]
        kind = node.get_type_name()
        if len(read) != 1 or kind not in ("FakeQuantize", "Add", "Multiply"):
            return None
        if kind == "Multiply":
            constant = next(constant_above(source) for source in node.input_values() if source not in read)
            if constant is None:
                return None
            factor = factor * constant
        value = read[0]
