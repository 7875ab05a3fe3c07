"""The arguments of each command, in a function of its name; then those that several commands share.

Only names are imported, so that help and completion are fast. What a command does is the function ``call`` of the
module of its name, which is imported when the command is run.
"""

from __future__ import annotations

import argparse

from ovlpt.choices import EXECUTABLE, EXPECTABLE, FLOAT, GPUS, HINTS, INSTRUCTION_SETS, RUNTIMES, STOCK

REPORT = "report.html"  # the page of a report without a name


def run(commands, summary: str) -> None:
    parser = _command(
        commands,
        "run",
        summary,
        "Transform a model, compile it with the plugin's own LPT off, run it, and compare it with the plugin's own LPT and float.",
        "ovlpt run resnet50.xml -i images.npz --json run.json",
    )
    _add_model(parser, otherwise="a bundled one")
    _add_settings(parser)
    _add_isa(parser)
    _add_virtual(parser)
    _add_input(parser)
    _add_float(parser, "for the float latency")
    parser.add_argument("-pc", action="store_true", help="print every performance counter, fused layers too")
    _add_json(parser, "everything")


def explain(commands, summary: str) -> None:
    parser = _command(
        commands,
        "explain",
        summary,
        "List the operations that are not in low precision, with the reason and what would help.",
        "ovlpt explain resnet50.xml --strict",
    )
    _add_model(parser)
    _add_settings(parser)
    _add_isa(parser)
    _add_virtual(parser)
    parser.add_argument(
        "--layer", metavar="NAME", help="show only the operation of this name, with the operations above it"
    )
    parser.add_argument(
        "--details", action="store_true", help="print one row for each operation that is not in low precision"
    )
    parser.add_argument(
        "--graph-only",
        action="store_true",
        help="compile nothing: faster, but does not see missing kernels",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit 1 when a quantizable layer is executed in float (with --post-ops: when a prediction is wrong)",
    )
    parser.add_argument(
        "--post-ops",
        action="store_true",
        help="print each int8 layer's scales and post-operations, as predicted and as compiled",
    )
    parser.add_argument("--stock", action="store_true", help="with --post-ops: those of the plugin's own LPT")
    _add_json(parser, "the answers")


def report(commands, summary: str) -> None:
    parser = _command(
        commands,
        "report",
        summary,
        "Transform, compile and run a model, and say on one self-contained page what keeps it from being faster. With two "
        "models, compare the first with the second; with a folder as output, write a page for each model and an index.",
        "ovlpt report resnet50.xml -o resnet50.html --csv layers.csv",
    )
    parser.add_argument("models", nargs="+", metavar="MODEL", help="quantized models (.xml, .onnx …)")
    _add_device(parser)
    _add_settings(parser)
    _add_isa(parser)
    _add_virtual(parser)
    _add_input(parser)
    _add_float(parser, "for its latency")
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT.html",
        help=f"the page; default: {REPORT}, unless --json or --csv is given; with several models, a folder for all pages",
    )
    parser.add_argument("--open", action="store_true", help="show the page in the browser")
    _add_json(parser, "everything (for several models, what the index says)")
    parser.add_argument("--csv", metavar="FILE", help="write a table of the layers to a file")
    add_workers(parser)


def check(commands, summary: str) -> None:
    parser = _command(
        commands,
        "check",
        summary,
        "Compile a quantized model and compare the precision of its layers with that under the plugin's own LPT (the default), "
        "with a list, or with an earlier run; and compare its outputs with those of the FakeQuantize simulation.",
        "ovlpt check resnet50.xml -d GPU --virtual xelp --expect int8:Convolution,MatMul",
    )
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="a quantized model (.xml, .onnx …), or a fleet (.toml)"
    )
    _add_device(parser)
    _add_config(parser)
    question = parser.add_mutually_exclusive_group()
    question.add_argument(
        "--expect",
        action="append",
        metavar="PRECISION:OPERATIONS",
        help=f"the precision of each layer of these operations ({', '.join(EXPECTABLE)}); may be repeated",
    )
    question.add_argument(
        "--against", choices=(STOCK,), help="int8 wherever the plugin's own LPT runs int8; the default"
    )
    question.add_argument("--baseline", metavar="FILE.json", help="the precisions of an earlier run")
    parser.add_argument(
        "--save-baseline", metavar="FILE.json", help="write the precisions of this run, for a later --baseline"
    )
    parser.add_argument(
        "--counters", metavar="FILE.csv", help="check this report of benchmark_app instead of running the model"
    )
    parser.add_argument(
        "--save-counters", metavar="FILE.csv", help="run the model and write counters as benchmark_app does"
    )
    _add_virtual(parser)
    parser.add_argument(
        "--precision",
        choices=("f16", "bf16", "f32"),
        help="the type of floats; default: the device's own; on a CPU, f32 and its own",
    )
    parser.add_argument("--no-numbers", action="store_true", help="compare precisions only")
    _add_input(parser, "samples to compare numbers on: an array per input; default: generated ones, at several sizes")
    _add_isa(parser)
    parser.add_argument("--junit", metavar="FILE.xml", help="for a fleet: write its cases as JUnit XML")
    add_workers(parser)
    _add_json(parser, "the result")


def compare(commands, summary: str) -> None:
    parser = _command(
        commands,
        "compare",
        summary,
        "Run a model in float, fake-quantized, in int8, and with the device's default hints, and say layer by layer "
        "where the differences come from.",
        "ovlpt compare resnet50.xml -f resnet50_float.xml -i images.npz",
    )
    _add_model(parser, otherwise="a bundled one, with its data")
    _add_settings(parser)
    _add_virtual(parser)
    _add_input(
        parser,
        'an array of samples per input, and "labels" for the accuracy; or many such files: a folder, or "shards/*.npz"; '
        "default: one random sample",
    )
    _add_float(parser, "for the quantization error")
    parser.add_argument("--samples", type=int, default=16, metavar="N", help="compare layers on N samples; default: 16")
    parser.add_argument("--layers", type=int, default=10, metavar="N", help="print the N worst layers; default: 10")
    _add_threads(parser)
    add_workers(parser)
    _add_json(parser, "everything, with all layers,")


def complete(commands, summary: str) -> None:
    parser = _command(
        commands,
        "complete",
        summary,
        "Quantize float layers where measurements show that this is faster and costs little accuracy: insert missing FakeQuantize "
        "operations with ranges from the data, quantize float weights, change intervals that no kernel takes. Writes an "
        "ordinary quantized model.",
        "ovlpt complete bert.xml -i tokens.npz -o bert_complete.xml -f bert_float.xml",
    )
    _add_model(parser)
    _add_settings(parser)
    parser.add_argument(
        "-i",
        "--input",
        required=True,
        metavar="DATA.npz",
        help='an array of samples per input, and "labels" for the accuracy; or many such files: a folder, or "shards/*.npz"',
    )
    parser.add_argument("-o", "--output", required=True, metavar="OUT.xml", help="the quantized model to write")
    _add_float(parser, "to measure the loss against; default: MODEL with its FakeQuantize operations bypassed")
    parser.add_argument("--max-loss", type=float, default=1.0, metavar="DB", help="of SQNR, in total; default: 1")
    parser.add_argument(
        "--min-gain",
        type=float,
        default=1.0,
        metavar="PERCENT",
        help="of latency, for each change that is kept; default: 1",
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="after which nothing more is tried; default: 600",
    )
    _add_threads(parser)
    add_workers(parser)
    _add_json(parser, "all decisions and figures")


def bench(commands, summary: str) -> None:
    parser = _command(
        commands,
        "bench",
        summary,
        "Run two compiled networks in turn and say which is faster, by the median ratio of their times with a 95 % "
        "interval; also compare compile times and peak memory. Flags mean the same as in benchmark_app.",
        "ovlpt bench resnet50.xml --against stock -hint throughput -t 10",
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="quantized models (.xml, .onnx …)")
    parser.add_argument("-m", dest="model", metavar="MODEL", help="the same as MODEL")
    _add_device(parser)
    _add_settings(parser)
    parser.add_argument(
        "--against",
        default=STOCK,
        metavar="SIDE",
        help=f'"{STOCK}": the plugin\'s own LPT; "{FLOAT}": FakeQuantize bypassed; or another model, compiled with '
        f"ovlpt if it is quantized; default: {STOCK}",
    )
    _add_input(parser)
    parser.add_argument("-hint", default="latency", choices=(*HINTS, "tput"), help="performance hint; default: latency")
    parser.add_argument("-niter", type=int, metavar="N", help="number of inferences of each side")
    parser.add_argument(
        "-t", type=float, metavar="SECONDS", help="time for each side; default: 5, unless -niter is given"
    )
    parser.add_argument("-nstreams", metavar="N", help="number of streams; default: the device's choice")
    parser.add_argument(
        "-infer_precision",
        choices=("f32", "bf16", "f16"),
        help="the type of what is not in int8; default: the device's choice",
    )
    parser.add_argument(
        "-report_folder", metavar="FOLDER", help="write MODEL/SIDE/benchmark_report.csv there, as benchmark_app does"
    )
    add_workers(parser)
    _add_json(parser, "all figures")


def verify(commands, summary: str) -> None:
    parser = _command(
        commands,
        "verify",
        summary,
        "Compute the model in exact integers, compile each int8 layer alone, and compare the two.",
        "ovlpt verify resnet50.xml -i images.npz --layers 10",
    )
    _add_model(parser)
    _add_settings(parser)
    _add_isa(parser)
    _add_virtual(parser)
    _add_input(parser)
    parser.add_argument(
        "--method",
        default="openvino",
        metavar="METHOD",
        help=f"whose arithmetic is the reference: {', '.join(RUNTIMES)}; default: openvino",
    )
    parser.add_argument("--layers", type=int, metavar="N", help="check only the first N int8 layers")
    parser.add_argument("--against", metavar="OTHER", help="compile the layers of this model instead")
    _add_json(parser, "the records")


def fuse(commands, summary: str) -> None:
    parser = _command(
        commands,
        "fuse",
        summary,
        "Fuse what a quantizer should see as one operation: normalizations, split convolutions, ReLU6. Done before quantization.",
        "ovlpt fuse resnet50.xml -o resnet50_fused.xml",
    )
    parser.set_defaults(device=None)
    parser.add_argument("model", metavar="FLOAT", help="a model before quantization (.xml, .onnx …)")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.xml")
    parser.add_argument(
        "--value",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="turn an input or a variable into a constant; also NAME=true, NAME=false, NAME=NUMBER",
    )
    _add_json(parser, "what was fused, what was not, and the operations before and after")


def transform(commands, summary: str) -> None:
    parser = _command(
        commands,
        "transform",
        summary,
        "Transform a quantized model for a device and save it as IR.",
        "ovlpt transform resnet50.xml -o resnet50_int8.xml",
    )
    _add_model(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT.xml")
    _add_settings(parser)
    _add_virtual(parser)
    parser.add_argument(
        "--precision",
        choices=("f16", "f32"),
        help="the type that floats are asked for in; default: a GPU's own, f16; a CPU: f32 or bf16",
    )
    parser.add_argument(
        "--tune",
        action="store_true",
        help="measure on this CPU which form of each MatMul is faster; takes some seconds",
    )
    parser.add_argument("--fuse", action="store_true", help="first fuse normalizations and split convolutions")
    _add_json(parser, "the path of the model and the properties to compile it with")


def _command(commands, name: str, summary: str, description: str, example: str) -> argparse.ArgumentParser:
    """A command whose help ends with an example. ``summary``: its line in ``ovlpt --help``."""
    parser = commands.add_parser(name, help=summary, description=description, epilog=f"example: {example}")
    parser.set_defaults(command=name)
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="print what is being done; -vv: and what is done to each operation",
    )
    return parser


def _add_model(parser: argparse.ArgumentParser, otherwise: str | None = None) -> None:
    """MODEL and the device. ``otherwise``: what is taken without MODEL, where it may be left out."""
    what = "a quantized model (.xml, .onnx …)"
    if otherwise is None:
        parser.add_argument("model", metavar="MODEL", help=what)
    else:
        parser.add_argument("model", metavar="MODEL", nargs="?", help=f"{what}; default: {otherwise}")
    _add_device(parser)


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-d", "--device", default="CPU", metavar="DEVICE", help="what to compile for; default: CPU")


def _add_settings(parser: argparse.ArgumentParser) -> None:
    _add_config(parser)
    parser.add_argument("--force", action="store_true", help="work for a device without int8, too")


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE.toml", help="settings to use instead of the device's own")
    parser.add_argument(
        "--transformations",
        action="append",
        default=[],
        metavar="NAME",
        help="also run the transformations that an installed package offers under this name; may be repeated",
    )


def _add_input(parser: argparse.ArgumentParser, what: str = "one array per input; default: random") -> None:
    parser.add_argument("-i", "--input", metavar="DATA.npz", help=what)


def _add_float(parser: argparse.ArgumentParser, purpose: str) -> None:
    parser.add_argument(
        "-f", "--float", metavar="FLOAT.xml", dest="float_model", help=f"the model before quantization, {purpose}"
    )


def _add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """What is written is an `ovlpt.commands.printing.write_result`."""
    parser.add_argument("--json", metavar="FILE", help=f'write {what} to a file; "-": standard output')


def _add_isa(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--isa",
        metavar="ISA",
        help=f"limit the CPU to an older instruction set: {', '.join(INSTRUCTION_SETS)}",
    )


def _add_virtual(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--virtual", metavar="GPU", help=f"with -d GPU: compile for this GPU without having one: {', '.join(GPUS)}"
    )
    parser.add_argument(
        "--execute",
        action="store_true",
        help=f"run the kernels of {' or '.join(EXECUTABLE)} on the CPU, to get their numbers; needs the extra gpu",
    )


def add_workers(parser: argparse.ArgumentParser, resumable: bool = True) -> None:
    """``--workers`` and ``--scheduler``; ``resumable``: with a journal."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--workers", type=int, metavar="N", help="compute in N processes on this machine")
    group.add_argument(
        "--scheduler", metavar="tcp://HOST:PORT", help="compute on a Dask cluster; needs the extra cluster"
    )
    if resumable:
        parser.add_argument(
            "--resume",
            metavar="FILE",
            help="a journal of finished work, created if missing; a later run continues from it",
        )


def _add_threads(parser: argparse.ArgumentParser) -> None:
    """``--threads``: the last digits of a figure depend on their number."""
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads of an inference on a CPU; default: the plugin's choice; with workers, 1",
    )
