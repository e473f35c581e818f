"""The command line ``ember-ml``. Engines are loaded only when a command needs them."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import warnings
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.dispatch import has_extension
from ember_ml.dtypes import default_float
from ember_ml.errors import BackendNotFoundError, DeviceNotFoundError, EmberError
from ember_ml.tools import UsageError
from ember_ml.tools.console import (
    FAILED,
    MISUSED,
    Parser,
    complain,
    described,
    print_json,
    print_rich,
    show_help,
    table_of,
    takes_json,
)
from emberlint.output import standard_output

if TYPE_CHECKING:
    from rich.table import Table

INTERRUPTED, PIPE_BROKEN = 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status."""
    try:
        with standard_output():
            options = _parser().parse_args(arguments)
            status: int = options.command(options)
            return status
    except BrokenPipeError:
        # The reader of the output has closed the pipe.
        return PIPE_BROKEN
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BackendNotFoundError, DeviceNotFoundError, UsageError) as error:
        return complain(error, MISUSED)
    except (EmberError, OSError) as error:
        return complain(error, FAILED)


_EXAMPLES = """examples:
  ember-ml info                    what is installed, and which engine computes
  ember-ml info --json             the same for machines
  ember-ml backend set torch       make torch the default of your later programs
  ember-ml backend set torch --device cpu
                                   the same, on the CPU in place of the best device
  ember-ml backend clear           forget that
  ember-ml demo                    one program on every installed engine
  ember-ml launch -n 4 train.py    a program in four processes
  ember-ml generate FOLDER "Once"  text of a model in a folder
  ember-ml ops list                every operation and who provides it
  EMBER_ML_BACKEND=mlx ember-ml backend show
"""

_BACKEND = """The backend is the engine that computes. In order, these choose it:
use_backend or set_backend in the program, the variable EMBER_ML_BACKEND,
the file ~/.ember/backend (which 'set' writes and 'clear' removes), detection.

Its default device is where tensors are created. In order, these choose it:
use_backend(name, device=...), set_default_device or set_backend(name, device=...)
in the program, the variable EMBER_ML_DEVICE, the file, the engine's best device."""

_BACKEND_EXAMPLES = """examples:
  ember-ml backend show
  ember-ml backend set numpy
  ember-ml backend set torch --device cuda:1
  ember-ml backend clear
"""

_DEMO = """Trains a classifier of handwritten digits with one program and one seed on every
installed engine, and compares: the loss of every epoch, accuracy, seconds."""

_DEMO_EXAMPLES = """examples:
  ember-ml demo
  ember-ml demo --model cnn --backend numpy torch
  ember-ml demo --model cfc --epochs 5 --seed 7 --json
"""

_PICTURE = "ember-ml-demo.png"

_LAUNCH = """Starts a program in several processes, the ranks of ember_ml.distributed, on this
host or on those of a file. Each line of output has the number of its rank before it.
If a rank fails, the others are ended, its traceback comes last, and its exit status
is that of this command. Ctrl-C ends all ranks."""

_LAUNCH_EXAMPLES = """examples:
  ember-ml launch -n 4 train.py --epochs 10
  ember-ml launch -n 2 --backend mlx -m package.train
  ember-ml launch --hosts hosts.txt --max-restarts 3 train.py

A file of hosts has a line for each, such as 'node1 slots=4'. ssh must reach them without
a password, and the program and its Python must have the same path there.
"""

_GENERATE = """Continues a text with a model in a folder, in the layout of Hugging Face: config.json,
model.safetensors and tokenizer.json. The text is printed while it is computed.
One seed gives one text on every engine. With --tokens, prompt and result are numbers
of tokens, and tokenizer.json is not needed."""

_GENERATE_EXAMPLES = """examples:
  ember-ml generate gpt2 "Once upon a time"
  ember-ml generate gpt2 "Once" --max-tokens 50 --temperature 0.7 --top-p 0.9 --seed 7
  ember-ml generate gpt2 "7454 2402 257" --tokens
  EMBER_ML_BACKEND=numpy ember-ml generate gpt2 "Once" --seed 7 --json
"""


def _parser() -> argparse.ArgumentParser:
    parser = described(Parser(prog="ember-ml"), "One program, any array engine.", _EXAMPLES)
    parser.add_argument("--version", action="version", version=f"ember-ml {ember_ml.__version__}")
    parser.set_defaults(command=show_help(parser), json=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    info = commands.add_parser("info", help="engines, versions, devices; the active backend, its device, and why")
    described(info, "What is installed here, which engine computes, and on which device.", "")
    takes_json(info, _info)

    backend = commands.add_parser("backend", help="show or change the default engine")
    described(backend, _BACKEND, _BACKEND_EXAMPLES)
    takes_json(backend, _show)
    actions = backend.add_subparsers(title="actions", metavar="ACTION")
    takes_json(actions.add_parser("show", help="the active backend and why (also without an action)"), _show)
    keep = actions.add_parser("set", help="keep a choice for later programs")
    keep.add_argument("name", metavar="NAME", help="a backend, such as numpy, torch, mlx or jax")
    keep.add_argument(
        "--device", metavar="DEVICE", help="its default device, such as cpu or cuda:1 (default: the best)"
    )
    takes_json(keep, _set)
    takes_json(actions.add_parser("clear", help="remove the choice that was kept"), _clear)

    demo = commands.add_parser("demo", help="one program on every installed engine")
    described(demo, _DEMO, _DEMO_EXAMPLES)
    demo.add_argument(
        "--backend",
        metavar="NAME",
        nargs="+",
        action="extend",
        help="the engines to run on (default: all that are installed)",
    )
    demo.add_argument(
        "--model",
        choices=("mlp", "cnn", "transformer", "cfc"),
        default="mlp",
        help="what to train: mlp (default), cnn, transformer, or cfc, a liquid network",
    )
    demo.add_argument("--epochs", metavar="N", type=_positive, help="how long to train (default: 15 or 20 by model)")
    demo.add_argument("--seed", metavar="S", type=_seed, default=0, help="of data order and first weights (default: 0)")
    demo.add_argument(
        "--plot", metavar="FILE", default=_PICTURE, help=f"where to draw the loss curves (default: {_PICTURE})"
    )
    takes_json(demo, _demo)

    launch = commands.add_parser("launch", help="a program in several processes, on one host or more")
    described(launch, _LAUNCH, _LAUNCH_EXAMPLES)
    launch.add_argument(
        "-n", "--ranks", metavar="N", type=_positive, help="how many processes (default: 1, or the slots of the hosts)"
    )
    launch.add_argument("--backend", metavar="NAME", help="the engine that computes, as EMBER_ML_BACKEND")
    launch.add_argument("--hosts", metavar="FILE", help="where to start them (default: this host)")
    launch.add_argument(
        "--max-restarts", metavar="K", type=_count, default=0, help="how often to start all again after a failure"
    )
    launch.add_argument("-m", dest="is_module", action="store_true", help="PROGRAM is the name of a module")
    launch.add_argument("program", metavar="PROGRAM", help="a Python file")
    launch.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER, help="its own arguments")
    launch.set_defaults(command=_launch)

    generate = commands.add_parser("generate", help="text of a model in a folder")
    described(generate, _GENERATE, _GENERATE_EXAMPLES)
    generate.add_argument(
        "folder", metavar="FOLDER", help="where config.json, model.safetensors and tokenizer.json are"
    )
    generate.add_argument("prompt", metavar="PROMPT", help="the beginning of the text")
    generate.add_argument(
        "--tokens",
        action="store_true",
        help="PROMPT is token IDs, such as '5 9 1' or 5,9,1, and so is the result",
    )
    generate.add_argument("--max-tokens", metavar="N", type=_count, default=128, help="how much to add (default: 128)")
    generate.add_argument(
        "--temperature", metavar="T", type=float, default=1.0, help="0 for the most probable token (default: 1)"
    )
    generate.add_argument("--top-k", metavar="K", type=_positive, help="choose among so many tokens (default: all)")
    generate.add_argument("--top-p", metavar="P", type=float, help="choose among so much probability (default: 1)")
    generate.add_argument(
        "--stop", metavar="TEXT", action="append", help="end before this text, or token; may be repeated"
    )
    generate.add_argument("--seed", metavar="S", type=_seed, help="of the random choices (default: a new one)")
    generate.add_argument("--dtype", metavar="DTYPE", help="of the weights (default: that of the file)")
    generate.add_argument("--device", metavar="DEVICE", help="where to compute (default: the default device)")
    takes_json(generate, _generate)

    from ember_ml.tools import commands as tools  # it imports this module

    tools.add(commands)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"a count must be an integer >= 1, got {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a count must be an integer >= 0, got {text!r}")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**64:
        raise argparse.ArgumentTypeError(f"a seed must be an integer from 0 to 2**64 - 1, got {text!r}")
    return int(text)


def _generate(options: argparse.Namespace) -> int:
    from ember_ml import models

    if options.seed is None:
        # Drawn here, so that --json shows how to get the text again.
        options.seed = int.from_bytes(os.urandom(4))
    names = ("max_tokens", "temperature", "top_k", "top_p", "stop", "seed")
    settings = {name: getattr(options, name) for name in names}
    prompt, ends, tokenizer = options.prompt, options.stop, None
    notes: list[Any] = []
    try:
        if options.tokens:
            prompt = _tokens("PROMPT", prompt)
            ends = ends and [token for text in ends for token in _tokens("--stop", text)]
        else:
            tokenizer = models.load_tokenizer(options.folder)
        model = models.load(options.folder, options.dtype, options.device)
        if ends is not None:
            # Besides the tokens that end every text of the model.
            settings["stop"] = [*ends, *model.stop_tokens]
        pieces: list[Any] = []
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: notes.append(message)
            for piece in model.stream(prompt, tokenizer=tokenizer, **settings):
                if not options.json:
                    print(" " if options.tokens and pieces else "", piece, sep="", end="", flush=True)
                pieces.append(piece)
    except BrokenPipeError:
        raise
    except (EmberError, ImportError, OSError, TypeError, ValueError) as error:
        return complain(error, MISUSED)
    if options.json:
        result = {"tokens": pieces} if options.tokens else {"text": "".join(pieces)}
        print_json({"backend": model.backend, "prompt": prompt, **result, "seed": options.seed})
    else:
        print()
    for note in notes:
        print("ember-ml: note:", note, file=sys.stderr)
    return 0


def _tokens(name: str, text: str) -> list[int]:
    """Numbers of tokens, separated by spaces or commas."""
    words = text.replace(",", " ").split()
    if not words or not all(word.isdecimal() for word in words):
        raise UsageError(f"{name} must be token IDs for --tokens, such as '5 9 1' or 5,9,1, got {text!r}")
    return [int(word) for word in words]


def _info(options: argparse.Namespace) -> int:
    active, failure = _active()
    facts = {
        "ember_ml": ember_ml.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **active,
        **_device(active["backend"]),
        "default_dtype": default_float().name,
        "extension": has_extension(),
        "engines": _engines(active["backend"]),
    }
    if options.json:
        print_json(facts)
    else:
        print(f"Ember ML {facts['ember_ml']}, Python {facts['python']}, {facts['platform']}")
        print(_reason(active))
        if facts["device"] is not None:
            print(_device_reason(facts))
        print("default dtype:", facts["default_dtype"])
        print("dispatch:", _dispatch_reason(facts["extension"]))
        print_rich(_engine_table(facts["engines"]))
    return complain(failure, MISUSED) if failure else 0


def _dispatch_reason(has_c: bool) -> str:
    if has_c:
        return "C extension"
    if os.environ.get("EMBER_ML_PURE_PYTHON", "") not in ("", "0"):
        return "Python, by environment variable EMBER_ML_PURE_PYTHON"
    return f"Python: there is no C extension in {Path(ember_ml.__file__).parent}"


def _active() -> tuple[dict[str, Any], EmberError | None]:
    """Active backend and the source of its choice, and the error if it or its device is not available."""
    try:
        name, source = backends.get_backend(), backends.choice_source()
    except (BackendNotFoundError, DeviceNotFoundError) as error:
        return {"backend": None, "source": None}, error
    try:
        backends.current().device_choice()
    except DeviceNotFoundError as error:
        return {"backend": name, "source": source}, error
    return {"backend": name, "source": source}, None


def _device(active: str | None) -> dict[str, Any]:
    """Default device of the active backend and the source of its choice; ``None`` if it is not available."""
    if active is None:
        return {"device": None, "device_source": None}
    try:
        source = backends.current().device_choice().source
    except DeviceNotFoundError:
        return {"device": None, "device_source": None}
    return {"device": ops.get_default_device(), "device_source": source}


def _device_reason(facts: dict[str, Any]) -> str:
    if facts["device_source"] != "detection":
        return f"default device: {facts['device']}, by {facts['device_source']}"
    which = "the only one" if len(backends.current().devices()) == 1 else "the best one"
    return f"default device: {facts['device']}, {which} of {facts['backend']}"


def _reason(active: dict[str, Any]) -> str:
    if active["backend"] is None:
        return "active backend: none"
    if active["source"] == "detection":
        return (
            f"active backend: {active['backend']}, by detection: neither the environment variable {backends.VARIABLE} "
            f"nor the file {backends.choice_file()} names one"
        )
    return f"active backend: {active['backend']}, by {active['source']}"


def _engines(active: str | None) -> list[dict[str, Any]]:
    """Properties of each engine. ``loaded`` is the state before this function loads engines to list their devices."""
    loaded = {backend.name for backend in backends.loaded()}
    available = backends.get_available_backends()
    found = []
    for name, home in backends.homes().items():
        engine: dict[str, Any] = {
            "name": name,
            "installed": name in available,
            "version": None,
            "active": name == active,
        }
        engine |= {"loaded": name in loaded, "devices": [], "settings": [], "error": None, "install": home.install}
        if engine["installed"]:
            try:
                backend = backends.load(name)
                engine["devices"], engine["settings"] = backend.devices(), backend.settings()
            except (BackendNotFoundError, DeviceNotFoundError) as error:
                engine["error"] = " ".join(str(error.__cause__ or error).split())
            engine["version"] = _version(home.engine)
        found.append(engine)
    return found


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return getattr(sys.modules.get(package), "__version__", None)


def _engine_table(engines: list[dict[str, Any]]) -> Table:
    table = table_of("engine", "version", "devices", "state")
    for engine in engines:
        state = "active" if engine["active"] else "loaded" if engine["loaded"] else "installed"
        if engine["error"]:
            state = f"fails to import: {engine['error']}"
        elif not engine["installed"]:
            state = f"not installed: {engine['install']}"
        version = ", ".join([engine["version"] or "-", *engine["settings"]])
        table.add_row(
            engine["name"], version, ", ".join(engine["devices"]) or "-", state,
            style="bold" if engine["active"] else "",
        )  # fmt: skip
    return table


def _show(options: argparse.Namespace) -> int:
    name, source = backends.get_backend(), backends.choice_source()
    environment, path = os.environ.get(backends.VARIABLE, "").strip() or None, backends.choice_file()
    kept = _kept()
    facts = {"backend": name, "source": source, "environment": environment, "file": str(path), "kept": kept}
    facts |= {"device_source": backends.current().device_choice().source, "device": ops.get_default_device()}
    if options.json:
        print_json(facts)
        return 0
    print(_reason({"backend": name, "source": source}))
    print(_device_reason(facts))
    table = table_of("place, in order", "says")
    for place, says in (
        ("use_backend", None),
        ("set_backend", None),
        (f"environment variable {backends.VARIABLE}", environment),
        (f"file {path}", kept),
        ("detection", None),
    ):
        decides = place == source
        table.add_row(place, name if decides else says or "-", style="bold" if decides else "")
    print_rich(table)
    return 0


def _kept() -> str | None:
    """Choice stored in the file, if it can be read."""
    try:
        return str(backends.kept_choice()) or None
    except BackendNotFoundError:
        return None


def _set(options: argparse.Namespace) -> int:
    backend = backends.load(options.name, "ember-ml backend set")
    if options.device is not None:
        backend.place(options.device, "ember-ml backend set")
    backends.set_backend(options.name, persist=True, device=options.device)
    path, environment = backends.choice_file(), os.environ.get(backends.VARIABLE, "").strip()
    if options.json:
        print_json({"backend": options.name, "device": options.device, "file": str(path)})
    else:
        place = f" on {options.device}" if options.device is not None else ""
        print(f"{options.name}{place} is the default from now on ({path})")
    if environment and environment != options.name:
        print(f"ember-ml: note: {backends.VARIABLE}={environment} goes before that file", file=sys.stderr)
    device = os.environ.get(backends.DEVICE_VARIABLE, "").strip()
    if device and options.device is not None and device != options.device:
        print(f"ember-ml: note: {backends.DEVICE_VARIABLE}={device} goes before that file", file=sys.stderr)
    return 0


def _clear(options: argparse.Namespace) -> int:
    path = backends.choice_file()
    kept, existed = _kept(), path.exists()
    backends.clear_backend(persisted=True)
    if options.json:
        print_json({"removed": existed, "kept": kept, "file": str(path)})
    else:
        print(
            f"removed {path}, which said {kept or 'nothing'}" if existed else f"nothing to remove: there is no {path}"
        )
    return 0


def _demo(options: argparse.Namespace) -> int:
    from ember_ml import demo

    runs: list[demo.Run] = []
    names = list(dict.fromkeys(options.backend or backends.get_available_backends()))
    for name in options.backend or ():
        backends.load(name, "ember-ml demo --backend")
    epochs = options.epochs or demo.MODELS[options.model].epochs
    for name in names:
        try:
            with _progress(name, epochs, hidden=options.json) as progress:
                runs.append(demo.run(name, options.model, options.seed, epochs, progress))
        except EmberError as error:
            if options.backend:
                raise
            complain(f"{name} is left out: {error}", 0)
    if not runs:
        raise EmberError("demo: at least one engine must run, got none")
    try:
        demo.plot(runs, f"{options.model} on handwritten digits, seed {options.seed}", options.plot)
        picture = f"the loss curves are in {options.plot}"
    except (ImportError, OSError, ValueError) as error:
        # The results are shown even if the folder is not writable or the image format is unknown.
        picture = f"there is no picture: {error}"
    if options.json:
        print_json({**demo.report(runs, options.model, options.seed), "picture": picture})
        return 0
    title = f"{options.model} on handwritten digits, seed {options.seed}: loss by epoch"
    print(title)
    print_rich(_run_table(runs, demo.disagreement(runs)))
    print(picture)
    return 0


def _run_table(runs: Sequence[Any], apart: Sequence[float]) -> Table:
    table = table_of("epoch", *(one.backend for one in runs), "largest difference")
    for column in table.columns[1:]:
        column.justify = "right"
    for epoch, difference in enumerate(apart):
        losses = (f"{one.losses[epoch]:.6f}" for one in runs)
        table.add_row(str(epoch + 1), *losses, f"{difference:.1e}" if len(runs) > 1 else "only one ran")
    table.add_section()
    table.add_row("test accuracy", *(f"{one.accuracy:.1%}" for one in runs))
    table.add_row("seconds", *(f"{one.seconds:.1f}" for one in runs))
    return table


class _progress:  # noqa: N801 - reads as a noun where it is used
    """Progress bar for training on one engine, on a terminal only."""

    def __init__(self, name: str, epochs: int, *, hidden: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        columns = (
            TextColumn(f"{name:>6}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns, console=console, disable=hidden or not console.is_terminal)
        self.task = self.bar.add_task("", total=epochs)

    def __enter__(self) -> _progress:
        self.bar.start()
        return self

    def __call__(self, loss: float) -> None:
        self.bar.update(self.task, description=f"loss {loss:.4f}", advance=1)

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


def _launch(options: argparse.Namespace) -> int:
    from ember_ml.tools import supervisor

    if options.backend is not None and options.backend not in backends.get_available_backends():
        backends.load(options.backend, "ember-ml launch --backend")  # raises, and says what to install
    if options.hosts is not None:
        hosts = supervisor.read_hosts(options.hosts, options.ranks)
    else:
        hosts = ["localhost"] * (options.ranks or 1)
    command = [sys.executable, *(["-m"] if options.is_module else []), options.program, *options.arguments]
    return supervisor.run(supervisor.Plan(command, hosts, options.backend, options.max_restarts))
