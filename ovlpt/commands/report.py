from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path

from ovlpt.commands.arguments import REPORT
from ovlpt.commands.isa import limited
from ovlpt.commands.printing import console, write_result
from ovlpt.commands.settings import settings
from ovlpt.commands.virtual import on_virtual
from ovlpt.commands.workers import check_alone, workers
from ovlpt.display import printable
from ovlpt.files import check_writable, write_text
from ovlpt.inspect.report import Report, report
from ovlpt.inspect.report.fleet import report_fleet
from ovlpt.inspect.report.page import check_packages, to_html
from ovlpt.inspect.report.several import Network, comparison_page, index_page
from ovlpt.trace import InputError


def _call(options: argparse.Namespace) -> int:
    models = options.models
    options.model = models[0] if len(models) == 1 else None  # for the envelope of --json
    page = options.output
    if (page, options.json, options.csv) == (None, None, None) or (page is None and options.open):
        page = REPORT
    if page is not None:
        check_packages()
    if len(models) == 1:
        check_alone(options, "belong to several models; leave them out")
        return _one(options, page)
    if options.virtual or options.isa:
        check_alone(options, "have their own CPU and GPU; leave --isa and --virtual out")
    if options.csv is not None or options.float_model is not None:
        raise InputError("--csv and --float belong to one model; give one, or leave them out")
    if _is_folder(page):
        return _fleet(options, Path(page))
    check_alone(options, "belong to several models and a folder for their pages; give one with -o")
    if len(models) > 2:
        raise InputError(f"{len(models)} models need a folder for their pages; give one, as in: -o reports")
    return _pair(options, page)


call = on_virtual(_call, limited(_call))


def _is_folder(page: str | None) -> bool:
    return page is not None and (Path(page).suffix.lower() not in (".html", ".htm") or Path(page).is_dir())


def _one(options: argparse.Namespace, page: str | None) -> int:
    check_writable(page)
    found = _report(options, options.models[0])
    if page is not None:
        write_text(page, to_html(found))
    write_result(options, found.to_json())
    if options.csv is not None:
        found.write_csv(options.csv)
    console(options.json).print(found.verdict.text)
    if found.in_f32:
        mine, other = found.in_f32
        console(options.json).print(f"In f32: {mine:.3g} ms per inference, float {other:.3g} ms.")
    _written(options, page)
    return 0


def _pair(options: argparse.Namespace, page: str | None) -> int:
    check_writable(page)
    before, after = (_report(options, model) for model in options.models)
    if page is not None:
        write_text(page, comparison_page(before, after))
    write_result(options, {"networks": [Network.of(each).to_json() for each in (before, after)]})
    for name, each in (("before", before), ("after", after)):
        console(options.json).print(f"{name}: {each.verdict.text}")
    _written(options, page)
    return 0


def _fleet(options: argparse.Namespace, folder: Path) -> int:
    """A page for each model that can be used, an index for all; status 2 where one cannot be used."""
    check_writable(folder, folder=True)
    settings(options)  # what is wrong with them is said now
    out = console(options.json)
    found: dict[int, Network] = {}
    given = {"device": options.device, "inputs": options.input, "config": options.config, "virtual": options.virtual}
    with workers(options, out, "reporting", "models") as (executor, told):
        for place, network, page in report_fleet(options.models, executor, options.resume, told, **given):
            found[place] = network
            if network.error is not None:
                print(f"ovlpt: {printable(network.error, lines=False)}", file=sys.stderr)
            else:
                write_text(folder / network.page, page, folders=True)
                out.print(f"{network.model}: {network.verdict}")
    networks = [found[place] for place in sorted(found)]
    write_text(folder / "index.html", index_page(networks), folders=True)
    write_result(options, {"networks": [each.to_json() for each in networks]})
    _written(options, str(folder / "index.html"))
    return 2 if any(each.error for each in networks) else 0


def _report(options: argparse.Namespace, model: str) -> Report:
    config, virtual = settings(options), options.virtual
    return report(model, options.device, options.input, options.float_model, config, virtual=virtual)


def _written(options: argparse.Namespace, page: str | None) -> None:
    if page is not None:
        console(options.json).print(f"written: {page}")
        if options.open:
            webbrowser.open(Path(page).absolute().as_uri())
