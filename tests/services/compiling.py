"""Compiled services and their test programs, made once for all tests, as the lab compiles them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from perflab.host.own_folders import own_folder
from perflab.paths import compiled_dir
from perflab.stacks import compiled
from perflab.stacks.patience import never
from perflab.stacks.spec import ServiceSpec, load_service

ADDRESS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1")
THREAD = ("-fsanitize=thread", "-O1")
# What the tests' own programs are linked with: all but the sockets.
PARTS = tuple(
    f"src/{name}.cpp"
    for name in (
        "batch", "chunked_body", "head_parser", "json_text", "linear_parser", "quadratic_parser",
        "request_reader", "store",
    )
)  # fmt: skip
# And what those need that look at each part by itself: little, so that they are soon compiled.
FEW_PARTS = ("src/head_parser.cpp", "src/json_text.cpp", "src/response.cpp")


def with_flags(*flags: str, service: str = "metricstream") -> ServiceSpec:
    """Return a service that is compiled with further flags."""
    spec = load_service(service)
    assert spec.compile is not None
    part = spec.compile.model_copy(update={"flags": (*spec.compile.flags, *flags)})
    return spec.model_copy(update={"compile": part})


def program(name: str, *flags: str, parts: tuple[str, ...] = PARTS) -> Path:
    """Return one of metricstream's test programs, compiled when it is not there."""
    spec = with_flags(*flags)
    assert spec.compile is not None
    own = {"sources": (f"tests/{name}.cpp", *parts), "output": name}
    part = spec.compile.model_copy(update=own)
    named = spec.model_copy(update={"name": f"metricstream-{name}", "compile": part})
    return compiled.ensure(named, own_folder(compiled_dir()), lambda _: None, never)


def run(path: Path, *words: str, told: str = "") -> str:
    """Run a program to its end, which must be a good one; return what it printed."""
    done = subprocess.run(
        [path, *words], input=told, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
