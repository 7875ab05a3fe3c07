"""The report as one HTML file that needs no network."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ovlpt.device.overflow import REMEDY
from ovlpt.display import printable
from ovlpt.graph.names import without_added
from ovlpt.inspect.report.charts import PLOT_HEIGHT, PLOT_WIDTH, bars, scatter
from ovlpt.inspect.report.facts import Report
from ovlpt.inspect.report.layers import Kind, Layer
from ovlpt.inspect.report.picture import HEIGHT, WIDTH, picture
from ovlpt.reasons import Cause
from ovlpt.trace import InputError, Outcome

TOP, LEAST = 5, 0.01  # bottlenecks, and the share of time or work that the least of them takes
WHOLE = 160  # layers up to which the whole graph is shown, and not a neighbourhood
GLOSSARY = {  # what a word says when the pointer rests on it
    "int8": "8-bit integers: a quarter of the memory of f32, and kernels that multiply four times as many at once",
    "float": "real numbers in f32, bf16 or f16",
    "border": "a layer between int8 and float: it quantizes, dequantizes or changes the layout, and computes nothing else",
    "movement": "a layer that only moves values: Split, Concat, Transpose, a change of layout",
    "other": "a layer that computes indices, shapes or masks, which are not quantized numbers",
    "MACs": "multiply-accumulate operations, the work of a convolution, a MatMul or a recurrent layer",
    "Kernel": "the routine with which the plugin executed the layer, its instruction set, and its type",
    "FakeQuantize": "the operation with which a quantizer marks a tensor: it rounds to the levels of an interval",
    "float islands": "float layers between int8 layers: their data is dequantized before them and quantized after them",
    "Reorder": "the plugin's copy of a tensor into another layout or type",
    "Subgraph": "several elementwise operations that the plugin compiled into one kernel",
    "VNNI": "CPU instructions that multiply and sum 8-bit integers without overflow",
    "trace": "what each transformation did to each operation, or why it did nothing",
}
LABELS = {
    Cause.NOTHING: "nothing in the way",
    Cause.PLACEMENT: "the quantization",
}  # of verdicts; others are the cause's name


def to_html(report: Report) -> str:
    """Raises `InputError` without the packages of the extra ``report``."""
    environment = templates()
    executed = report.executed
    prefix = _shared_prefix([layer.name for layer in executed])
    environment.filters["plain"] = lambda name: _own(name).removeprefix(prefix)
    environment.filters |= {"short": _short}
    return environment.get_template("page.html").render(
        report=report,
        timed=report.facts.timed,
        title=Path(report.model).name,
        layers=executed,
        kinds=Counter(layer.kind for layer in executed),
        Kind=Kind,
        shares=report.time_shares(),
        total=sum(layer.milliseconds for layer in executed),
        slowest=max((layer.milliseconds for layer in executed), default=0.0) or 1.0,
        work=sum(layer.multiply_accumulates for layer in report.layers),
        top=[each for each in report.bottlenecks[:TOP] if max(each.time_share, each.work_share) >= LEAST],
        picture=picture(report.layers),
        box_size=(WIDTH, HEIGHT),
        neighbourhoods=len(report.layers) > WHOLE,
        prefix=prefix,
        details=_printable(_details(report)),
        trace=_trace(report),
        outcomes=[str(each) for each in Outcome],
        remedy=REMEDY,
        bars=bars(executed),
        scatter=scatter(executed),
        plot=(PLOT_WIDTH, PLOT_HEIGHT),
    )


def templates() -> Any:
    """The environment of jinja2 with this folder's templates. Raises `InputError` without the extra ``report``."""
    check_packages()
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("ovlpt.inspect.report")
    environment = Environment(
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: (folder / name).read_text("utf-8")),
    )

    environment.globals |= {
        "glossary": GLOSSARY,
        "label": lambda cause: LABELS.get(cause, str(cause)),
        "style": (folder / "page.css").read_text("utf-8"),
        "script": (folder / "page.js").read_text("utf-8"),
    }
    environment.filters |= {"ms": milliseconds, "count": count, "percent": percent, "breaks": _breaks}
    return environment


def _breaks(text: str) -> Any:
    """Text whose long words, which are names, are broken at their separators and not within a word of theirs."""
    from markupsafe import Markup, escape

    parts = re.split(
        r"(?<=[/_:=;,@|])(?=\w)|(?<=\.)(?=[^\W\d])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", _shown(text)
    )
    return Markup("<wbr>").join(map(escape, parts))


def _shown(value: Any) -> Any:
    """What a template prints: of a name no character turns the text around it, or is not one of HTML."""
    return printable(value, lines=False) if type(value) is str else value


def _printable(value: Any) -> Any:
    """The same for what a script shows."""
    if isinstance(value, dict):
        return {key: _printable(each) for key, each in value.items()}
    return [_printable(each) for each in value] if isinstance(value, (list, tuple)) else _shown(value)


def check_packages() -> None:
    """Raise `InputError` where the packages of the extra ``report`` are missing: before the work, not after it."""
    missing = [name for name in ("jinja2", "fast_sugiyama") if find_spec(name) is None]
    if missing:
        raise InputError(f"the report needs the package {missing[0]}: pip install 'ovlpt[report]'")


def _shared_prefix(names: list[str]) -> str:
    """What most names begin with, up to a separator: it says nothing about any of them."""
    heads = Counter(re.split(r"[./]", name, maxsplit=1)[0] for name in names)
    head, times = heads.most_common(1)[0] if heads else ("", 0)
    if times <= len(names) // 2:
        return ""
    with_head = [name for name in names if name.startswith(head)]
    first, last = min(with_head), max(with_head)  # what these two share, all share
    size = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    return first[: max(first.rfind(".", 0, size), first.rfind("/", 0, size)) + 1]


def _own(name: str) -> str:
    """Of the operation, where the plugin calls the layer after the scale after it."""
    return without_added(name)


def _short(layer: Layer, size: int = 21) -> str:
    """The end of a name, which tells layers apart."""
    name = _own(layer.name)
    return name if len(name) <= size else f"…{name[1 - size :]}"


def _details(report: Report) -> dict[int, dict[str, object]]:
    """What a click on a layer shows besides its row: its operations, what lies above, what transformations did."""
    events: dict[str, list[tuple[str, str, str]]] = {}
    for event in report.trace:
        if event.outcome is Outcome.TRANSFORMED or event.reason is not None:
            text = event.reason.text if event.reason else ""
            events.setdefault(event.node, []).append((event.transformation, str(event.outcome), text))
    risks = {risk.layer: str(risk) for risk in report.overflow_risks}
    found: dict[int, dict[str, object]] = {}
    for layer in report.layers:
        names = list(dict.fromkeys((*layer.weighted, *layer.operations, *map(_own, layer.operations))))
        found[layer.index] = {
            "operations": list(layer.operations),
            "upstream": list(layer.answer.upstream[:8]) if layer.answer else [],
            "help": (layer.answer.help or "") if layer.answer else "",
            "events": _counted(event for name in names for event in events.get(name, ()))[:12],
            "risk": next((risks[name] for name in names if name in risks), ""),
        }
    return found


def _counted(events: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Each of the equal ones once, and how often."""
    return [
        (transformation, outcome if times == 1 else f"{outcome} {times}×", text)
        for (transformation, outcome, text), times in Counter(events).items()
    ]


def _trace(report: Report) -> list[tuple[str, dict[str, int]]]:
    """Per transformation: how often each outcome."""
    rows: dict[str, dict[str, int]] = {}
    for (transformation, outcome), times in sorted(report.trace.summary().items()):
        rows.setdefault(transformation, {})[outcome] = times
    return sorted(rows.items())


def milliseconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def percent(share: float) -> str:
    """Whole percents, but nothing that is there is 0%, and nothing that is not all is 100%."""
    return "<1%" if 0 < share < 0.005 else f"{share:.1%}" if 0.995 <= share < 0.9995 else f"{share:.0%}"


def count(number: float) -> str:
    """With a prefix: 118 M."""
    for prefix in ("", " k", " M", " G"):
        if number < 999.5:
            return f"{number:.3g}{prefix}" if prefix else f"{number:.0f}"
        number /= 1000
    return f"{number:.3g} T"
