"""Compile properties of runs whose numbers, layers or times are compared: the one place that knows them."""

from __future__ import annotations

from ovlpt.plugin_config import kind

LPT_OFF: dict[str, dict[str, object]] = {"CPU": {"LP_TRANSFORMS_MODE": "NO"}, "GPU": {"LP_TRANSFORMS_MODE": False}}

# The plugin's own LPT is not part of the key of its model cache: two compilations of one model that differ in nothing
# else share a blob, so that a network would be compared with itself, and the user's cache keep the wrong one.
UNCACHED = {"CACHE_DIR": ""}

# As for a user who asks for the latency of one inference: times, layers and numbers are measured with these.
LATENCY: dict[str, object] = {"PERFORMANCE_HINT": "LATENCY", **UNCACHED}

# A layer with integer weights and float data would be quantized dynamically, by rows, under a kernel of the name f32:
# errors of 0.5 % in what is to be the truth. 2024.6 takes the size as text only.
STATIC = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}

F32 = {"INFERENCE_PRECISION_HINT": "f32"}


EXACT = {**F32, **STATIC, **UNCACHED}  # for a model of floats: each operation computed as such


def simulation(device: str = "CPU") -> dict[str, object]:
    """For a quantized model on ``device``: each FakeQuantize computed as such, in f32, with the plugin's own LPT off.

    A CPU would keep the cache of an attention in u8 of its own.
    """
    plugin = kind(device)
    cache = {"KV_CACHE_PRECISION": "f32"} if plugin == "CPU" else {}
    return {**EXACT, **cache, **LPT_OFF.get(plugin, {})}
