"""Networks that run, the simulation first, and how far outputs of the others are from its."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ovlpt.device.execution_types import last_line
from ovlpt.inspect.numbers.cases import Case, Sample
from ovlpt.inspect.numbers.distance import Distance, resolution
from ovlpt.openvino_api import CompiledModel, Model, PartialShape

Compile = Callable[[Model], CompiledModel]


class Network:
    """A compiled model and its one request: a sample in, the outputs of each step out, as arrays of their own."""

    def __init__(self, compiled: CompiledModel):
        self._compiled, self._size = compiled, len(compiled.outputs)
        self._request = compiled.create_infer_request()

    def __call__(self, sample: Sample) -> list[list[np.ndarray]]:
        if self._request.query_state():  # a reset cache of another batch is read wrongly by the CPU plugin
            self._request = self._compiled.create_infer_request()
        found = []
        for arrays in sample:
            self._request.infer(arrays)
            found.append([np.array(self._request.get_output_tensor(index).data) for index in range(self._size)])
        return found


def with_expected(source: Model, cases: Sequence[Case], simulate: Compile, notes: list[str]) -> list[Case] | None:
    """The cases at whose sizes the simulation runs, with what it makes of them; None where it does not compile.

    At fixed sizes where the model has them: with open ones the plugin takes per-channel constants wrongly at times, in
    the simulation, too.
    """
    network, error = started(simulate, source)
    if network is None:
        notes.append(f"the simulation does not compile, and nothing can be compared with it: {error}")
        return None
    found: list[Case] = []
    fixed: dict[tuple, Any] = {(): network}
    floors = [resolution(result.input_value(0)) for result in source.get_results()]
    for case in cases:
        sizes = sizes_of(source, case)
        try:
            network(case.samples[0])  # the model may not take what one of fixed sizes takes without asking
            if sizes not in fixed:
                fixed[sizes] = started(simulate, at_sizes(source, dict(enumerate(sizes))))[0] or network
            expected = [fixed[sizes](sample) for sample in case.samples]
            found.append(replace(case, expected=expected, floors=floors))
        except RuntimeError as error:
            notes.append(f"the model does not run on inputs {case.inputs}: {last_line(error)}")
    return found


def sizes_of(source: Model, case: Case) -> tuple[tuple[int, ...], ...]:
    """The shapes to fix the inputs of ``source`` at; none where it has no open ones, or the samples several."""
    shapes = {tuple(array.shape for array in step) for sample in case.samples for step in sample}
    return next(iter(shapes)) if source.is_dynamic() and len(shapes) == 1 else ()


def at_sizes(model: Model, shapes: Mapping[str | int, Sequence[int]]) -> Model:
    """A copy with inputs, by name or number, of these shapes; the model itself where it does not take them."""
    fixed = model.clone()
    try:
        fixed.reshape({name: PartialShape(list(shape)) for name, shape in shapes.items()})
    except RuntimeError:
        return model
    return fixed


def started(compile_model: Compile, model: Model) -> tuple[Network | None, str]:
    """The network, or why there is none."""
    try:
        return Network(compile_model(model)), ""
    except RuntimeError as error:
        return None, last_line(error)


def distances_of(network: Network | None, case: Case, error: str) -> tuple[list[Distance] | None, str]:
    """How far each output is from the simulation; None, and why, where the network does not run."""
    if network is None:
        return None, error
    distances = [Distance(floor=floor) for floor in case.floors]
    try:
        for sample, expected in zip(case.samples, case.expected, strict=True):
            add(distances, expected, network(sample))
    except RuntimeError as error:
        return None, last_line(error)
    return distances, ""


def add(distances: Sequence[Distance], expected: Sequence[list[np.ndarray]], found: Sequence[list[np.ndarray]]) -> None:
    """Add the outputs of all steps of one sample."""
    for wanted, values in zip(expected, found, strict=True):
        for distance, reference, value in zip(distances, wanted, values, strict=True):
            distance.add(reference, value)
