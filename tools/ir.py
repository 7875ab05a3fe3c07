"""How the tools find models, and how they write them: an IR that says nothing about the machine it was made on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import openvino as ov

MODEL_RT_INFO = re.compile(r"^\t<rt_info>.*?^\t</rt_info>\n", re.DOTALL | re.MULTILINE)


def save_ir(model: ov.Model, path: Path, *, compress_to_fp16: bool = False) -> None:
    """Write ``path`` (``.xml``) and its ``.bin``, without the model's runtime information.

    Converters keep their own options there, paths of input files among them. The runtime information of nodes
    stays: it tells decompression from ordinary Converts.
    """
    ov.save_model(model, path, compress_to_fp16=compress_to_fp16)
    path.write_text(MODEL_RT_INFO.sub("", path.read_text("utf-8")), "utf-8")


def networks(paths: Iterable[Path]) -> Iterator[Path]:
    """The quantized networks that paths name: files, and those of folders, without the zoo's float ones.

    Raises `SystemExit` where there is nothing.
    """
    for path in paths:
        if not path.exists():
            raise SystemExit(f"no file or folder {path}")
        if path.is_file():
            yield path
        else:
            yield from sorted(file for file in path.glob("*.xml") if not file.stem.endswith("_float"))
