"""What calling a layer costs before it computes anything, measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ovlpt.device.states import anew
from ovlpt.graph.constants import constant
from ovlpt.inspect.latency import bootstrap_interval, interleaved_latencies
from ovlpt.openvino_api import CompiledModel, Core, Model, opset1

_PARTS = 5  # of the runs, for the interval
_CHAIN = 65  # layers of the chain that is compared with a single one


@dataclass(frozen=True, slots=True)
class Latencies:
    """Milliseconds. ``speed``: that of "int8" as a multiple of "float"'s, the median of pairs, and its interval of 95 %.
    ``call``: of an inference with one layer that computes next to nothing; ``layer``: of each such
    layer more. These two, and ``fastest``, are minima: what a busy machine adds is not overhead of the network.
    """

    medians: dict[str, float]
    fastest: dict[str, float]
    call: float
    layer: float
    speed: float
    speed_interval: tuple[float, float]

    def overhead(self, layers: int) -> float:
        """What calling that many layers takes at least."""
        return self.call + self.layer * max(layers - 1, 0)


def latencies(
    compiled: Mapping[str, CompiledModel],
    arrays: list[np.ndarray],
    core: Core,
    device: str,
    properties: Mapping[str, object],
    seconds: float,
) -> Latencies:
    """Of "int8" and "float", and of others, measured in runs in turn."""
    pixel = [np.ones((1, 8, 1, 1), np.float32)]
    requests = {name: (each.create_infer_request(), arrays) for name, each in compiled.items()}
    for length in (1, _CHAIN):
        requests[str(length)] = core.compile_model(_chain(length), device, properties).create_infer_request(), pixel
    found = interleaved_latencies(
        {name: anew(request, data) for name, (request, data) in requests.items()},
        seconds,
    )
    pairs = np.divide(found["float"], found["int8"])
    call, chain = min(found.pop("1")), min(found.pop(str(_CHAIN)))
    return Latencies(
        medians={name: float(np.median(times)) for name, times in found.items()},
        fastest={name: min(times) for name, times in found.items()},
        call=call,
        layer=max(chain - call, 0.0) / (_CHAIN - 1),
        speed=float(np.median(pairs)),
        speed_interval=bootstrap_interval(np.array_split(pairs, _PARTS)),
    )


def _chain(length: int) -> Model:
    """Convolutions of one pixel, one after the other."""
    node = data = opset1.parameter([1, 8, 1, 1])
    for at in range(length):
        weights = constant(np.full((8, 8, 1, 1), 1.0 / (8 + at), np.float32))
        node = opset1.convolution(node, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    return Model([node], [data], "chain")
