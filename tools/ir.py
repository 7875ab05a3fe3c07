"""How the tools find models, and how they write them: an IR that says nothing about the machine it was made on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

import openvino as ov

MODEL_RT_INFO = re.compile(r"^\t<rt_info( />|>.*?^\t</rt_info>)\n", re.DOTALL | re.MULTILINE)


def save_ir(
    model: ov.Model, path: Path, *, compress_to_fp16: bool = False, rt_info: Mapping[str, str] | None = None
) -> None:
    """Write ``path`` (``.xml``) and its ``.bin``, with ``rt_info`` instead of the model's runtime information.

    Converters keep their own options there, paths of input files among them. The runtime information of nodes
    stays: it tells decompression from ordinary Converts.
    """
    ov.save_model(model, path, compress_to_fp16=compress_to_fp16)
    kept = "".join(f"\t\t<{key} value={quoteattr(value)} />\n" for key, value in (rt_info or {}).items())
    section = f"\t<rt_info>\n{kept}\t</rt_info>\n" if kept else ""
    path.write_text(MODEL_RT_INFO.sub(lambda _: section, path.read_text("utf-8")), "utf-8")


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
