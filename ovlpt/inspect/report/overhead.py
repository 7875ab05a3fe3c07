"""What calling a layer costs before it computes anything, measured."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

import numpy as np

from ovlpt.inspect.latency import interleaved_latencies
from ovlpt.openvino_api import CompiledModel, Core, Model, opset1

_CHAIN = 65  # layers of the chain that is compared with a single one


def latencies(
    compiled: Mapping[str, CompiledModel],
    arrays: list[np.ndarray],
    core: Core,
    device: str,
    properties: Mapping[str, object],
    seconds: float,
) -> tuple[dict[str, float], float, float]:
    """Milliseconds: of each model, of an inference with one empty layer, and of each layer more. Medians of runs in turn."""
    empty = [np.zeros((1, 1, 1, 8), np.float32)]
    requests = {name: (each.create_infer_request(), arrays) for name, each in compiled.items()}
    for length in (1, _CHAIN):
        requests[str(length)] = core.compile_model(_chain(length), device, properties).create_infer_request(), empty
    found = interleaved_latencies(
        {name: (lambda request=request, data=data: request.infer(data)) for name, (request, data) in requests.items()},
        seconds,
    )
    middle = {name: median(times) for name, times in found.items()}
    call, chain = middle.pop("1"), middle.pop(str(_CHAIN))
    return middle, call, max(chain - call, 0.0) / (_CHAIN - 1)


def _chain(length: int) -> Model:
    """Poolings of eight numbers, one behind the other: plugins fuse none of them."""
    node = data = opset1.parameter([1, 1, 1, 8])
    for _ in range(length):
        node = opset1.max_pool(node, [1, 1], [0, 1], [0, 1], [1, 3])
    return Model([node], [data], "chain")
