"""An earlier run as what is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ovlpt.files import read_text
from ovlpt.inspect.check.layers import LayerPrecision
from ovlpt.trace import InputError


def read_baseline(path: str | Path, device: str | None) -> dict[str, Any]:
    """A stored `Check.baseline`; ``device``: the one that it has to be of, None for any."""
    text = read_text(path, "a baseline, which ovlpt check MODEL --save-baseline FILE makes", "the baseline ")
    try:
        content = json.loads(text)
        content = dict(content.get("result", content))  # which stood alone in 0.1
        if not isinstance(content["layers"], list):
            raise TypeError("layers are a list")
        content["layers"] = [
            LayerPrecision(**{**layer, "operations": tuple(layer["operations"])}) for layer in content["layers"]
        ]
        if not all(isinstance(text, str) for layer in content["layers"] for text in _texts(layer)):
            raise TypeError("a layer is described by texts")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f'"{path}" is not a baseline; make one with ovlpt check MODEL --save-baseline FILE') from error
    if device is not None and content.get("device") != device:
        raise InputError(f'the baseline "{path}" is of the device "{content.get("device")}", not of "{device}"')
    return content


def _texts(layer: LayerPrecision) -> tuple[object, ...]:
    return (layer.name, layer.layer_type, layer.precision, layer.exec_type, *layer.operations)


def other_settings(recorded: Mapping[str, object], settings: Mapping[str, str | None]) -> list[str]:
    """What sets a baseline apart from this run, where the layers can still be compared."""
    return [
        f"the baseline is of {key} {recorded.get(key)}, this run of {value}"
        for key, value in settings.items()
        if recorded.get(key) != value
    ]
