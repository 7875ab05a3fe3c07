"""What calling a layer costs before it computes anything, measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np

from ovlpt.graph.constants import constant
from ovlpt.inspect.latency import interleaved_latencies
from ovlpt.openvino_api import CompiledModel, Core, Model, opset1

_CHAIN = 65  # layers of the chain that is compared with a single one


@dataclass(frozen=True, slots=True)
class Latencies:
    """Milliseconds. ``call``: of an inference with one layer that computes next to nothing; ``layer``: of each such
    layer more. These two, and ``fastest``, are minima: what a busy machine adds is no overhead of the network.
    """

    medians: dict[str, float]
    fastest: dict[str, float]
    call: float
    layer: float

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
    """Measured in runs in turn."""
    pixel = [np.ones((1, 8, 1, 1), np.float32)]
    requests = {name: (each.create_infer_request(), arrays) for name, each in compiled.items()}
    for length in (1, _CHAIN):
        requests[str(length)] = core.compile_model(_chain(length), device, properties).create_infer_request(), pixel
    found = interleaved_latencies(
        {name: (lambda request=request, data=data: request.infer(data)) for name, (request, data) in requests.items()},
        seconds,
    )
    call, chain = min(found.pop("1")), min(found.pop(str(_CHAIN)))
    return Latencies(
        medians={name: median(times) for name, times in found.items()},
        fastest={name: min(times) for name, times in found.items()},
        call=call,
        layer=max(chain - call, 0.0) / (_CHAIN - 1),
    )


def _chain(length: int) -> Model:
    """Convolutions of one pixel, one after the other."""
    node = data = opset1.parameter([1, 8, 1, 1])
    for at in range(length):
        weights = constant(np.full((8, 8, 1, 1), 1.0 / (8 + at), np.float32))
        node = opset1.convolution(node, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    return Model([node], [data], "chain")
