"""The errors of `compare` on one shard of the data: the task that workers carry out."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from statistics import median

import numpy as np

from ovlpt import plugin_config
from ovlpt.device.execution_types import last_line
from ovlpt.device.this_cpu import saturates
from ovlpt.fleet.kept import Kept
from ovlpt.fleet.models import settings_here
from ovlpt.fleet.parcel import MissingError
from ovlpt.inspect.inputs import output_names
from ovlpt.inspect.latency import interleaved_latencies
from ovlpt.inspect.layer_errors import Layers
from ovlpt.inspect.runs import ERRORS, INT8, Network, Runs
from ovlpt.inspect.setup import Setup
from ovlpt.inspect.shards import Part, Sample, Shard
from ovlpt.inspect.totals import Totals
from ovlpt.openvino_api import Core, Model
from ovlpt.trace import InputError

_WORKBENCHES = Kept(2)  # models of a fleet come one after the other; each holds up to ten compiled networks


def _workbench(setup: Setup) -> Workbench:
    """Compiled here."""
    core = Core()
    models = setup.models(core)
    return Workbench(Runs(*models, setup.device, core, settings_here(setup.config), setup.threads), core)


def measure_with(setup: Setup, layer_samples: int, keep_going: bool, shard: Shard) -> dict[str, object]:
    """`Workbench.measure` in a worker, which compiles once for all tasks of one setup."""
    with _WORKBENCHES.lend(setup.key, functools.partial(_workbench, setup)) as workbench:
        return workbench.measure(layer_samples, keep_going, shard)


class Workbench:
    """The compiled networks, and what they measure."""

    def __init__(self, runs: Runs, core: Core):
        self.runs = runs
        self._names = output_names(runs.source)
        self._networks = {run: Network(compiled) for run, compiled in runs.plain.items()}
        self._about = {
            "device": plugin_config.label(core, runs.device),
            "float_precision": runs.float_precision,
            "saturates": saturates(core, runs.device),
            "runs": list(runs.plain),
        }

    @functools.cached_property
    def _layers(self) -> Layers:
        return Layers(self.runs)

    def measure(self, layer_samples: int, keep_going: bool, shard: Shard) -> dict[str, object]:
        """The `Totals` of a shard as plain values, of layers on the first ``layer_samples``.

        ``keep_going``: a part that cannot be used is skipped whole, and named; else `InputError` is raised.
        """
        totals = Totals(about=self._about)
        for part in shard:
            try:
                totals.merge(self._totals(part, layer_samples - totals.layer_samples))
            except MissingError:
                raise
            except (InputError, RuntimeError) as error:
                if not keep_going:
                    raise
                totals.skipped.append(f"{part.name} is left out: {last_line(error)}")
        return totals.to_plain()

    def _totals(self, part: Part, layer_samples: int) -> Totals:
        samples, labels = part.load(self.runs.source)
        totals = Totals(about=self._about)
        answers: dict[str, list[np.ndarray]] = {run: [] for run in self._networks}
        for sample in samples:
            for run, values in self._add(totals, sample, layer_samples).items():
                answers[run].append(classes(values[0]))
        if samples:
            _count_right(totals, {run: np.concatenate(found) for run, found in answers.items()}, labels)
        return totals

    def _add(self, totals: Totals, sample: Sample, layer_samples: int) -> dict[str, list[np.ndarray]]:
        """Add one sample, with its layers while there are fewer than ``layer_samples``; the results of each run."""
        results = {run: network(sample) for run, network in self._networks.items()}
        if totals.samples < layer_samples:
            totals.layers = totals.layers or self._layers.totals()
            disturbance = self._layers.add(sample, results[INT8], totals.layers)
            totals.disturbance = max(totals.disturbance, disturbance)
            totals.layer_samples += 1
        for error in self.runs.errors:
            reference, examined = (results[run] for run in ERRORS[error])
            for name, r, v in zip(self._names, reference, examined, strict=True):
                totals.outputs[error][name].add(r, v)
        totals.samples += 1
        return results

    def latencies(self, sample: Sequence[np.ndarray], seconds: float) -> dict[str, float]:
        """Of each run: median in milliseconds of runs in turn."""
        requests = {run: compiled.create_infer_request() for run, compiled in self.runs.plain.items()}
        found = interleaved_latencies(
            {run: functools.partial(each.infer, sample) for run, each in requests.items()}, seconds
        )
        return {run: median(times) for run, times in found.items()}


def classes(result: np.ndarray) -> np.ndarray:
    """The class that is found: the largest value along the last axis."""
    return result.argmax(-1).reshape(-1) if result.ndim else result.reshape(-1)


def _count_right(totals: Totals, answers: dict[str, np.ndarray], labels: np.ndarray | None) -> None:
    count = answers[INT8].size
    totals.answers += count
    if labels is None:
        return
    if labels.size != count:
        raise InputError(f"there are {labels.size} labels and {count} answers; give one label for each answer")
    totals.labelled += count
    for run, found in answers.items():
        totals.right[run] += int((found == labels).sum())


def usable_samples(part: Part, model: Model) -> Sequence[Sample]:
    """What a part holds; nothing where it cannot be used."""
    try:
        return part.load(model)[0]
    except InputError:
        return ()
