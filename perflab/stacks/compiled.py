"""Services that are compiled: each once per its sources, its flags and the compiler.

The command is what ``[compile]`` of ``service.toml`` says; the compiler is this machine's. In an
image the same command is run by the image's own compiler (``script``).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import platform
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from perflab.errors import ServiceFailed, StackError
from perflab.stacks import compilers
from perflab.stacks.compilers import Compiler
from perflab.stacks.identity import content_hash
from perflab.stacks.made_once import drop_unused, made
from perflab.stacks.patience import LOOK_EVERY_S, Interrupted, go_on, run_command
from perflab.stacks.spec import Compile, ServiceSpec

# What the image's compiler said of its version, beside the program.
COMPILER_SUFFIX = ".compiler"
LAST_LINES = 30
FULL_DISK = "the disk is full; free some space and call this again"


def ensure(
    spec: ServiceSpec,
    root: Path,
    tell: Callable[[str], None],
    interrupted: Interrupted,
    labels: Mapping[str, str] | None = None,
) -> Path:
    """Return a service's program, compiled when it is not there.

    Of several that want it at once one compiles and the others wait for it. ``labels`` are for the
    processes that this takes.

    Raises
    ------
    BackendUnavailable
        No compiler is here.
    ServiceFailed
        It cannot be compiled; the message holds the compiler's last lines.
    RunInterrupted
        The user wants to end; nothing of it is left.
    """
    compiler = compilers.find()
    target = _place(spec, root, compiler)

    def make(folder: Path) -> None:
        drop_unused(root)
        tell(f"compiling {spec.name} (once)")
        _compile(spec, compiler, folder, root, interrupted, labels or {})

    try:
        with _alone(root / f"{target.name}.lock", interrupted, _during(spec)):
            made(target, make)
    except OSError as error:
        why = FULL_DISK if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)
        raise ServiceFailed(spec.name, f"it cannot be compiled: {why}") from None
    return target / _description(spec).output


def program(spec: ServiceSpec, root: Path) -> Path:
    """Return the place of a service's program, which need not be there yet."""
    return _place(spec, root, compilers.find()) / _description(spec).output


def versions(spec: ServiceSpec, root: Path) -> dict[str, str]:
    """Return what compiled a service, and how, as it was noted when that was done."""
    return described(spec, _note(program(spec, root)).read_text())


def described(spec: ServiceSpec, compiler: str) -> dict[str, str]:
    """Return compiler, flags and libraries by the names that the record has for them."""
    part = _description(spec)
    words = [f"-std={part.standard}", *part.flags, *(f"-l{name}" for name in part.libraries)]
    return {"compiler": compiler.strip(), "compiler flags": " ".join(words)}


def script(spec: ServiceSpec) -> str:
    """Return a shell script that compiles the service in an image; its word is the program."""
    given = "$1"
    words = _description(spec).words(spec.folder, given)
    quoted = " ".join(f'"{given}"' if word == given else shlex.quote(word) for word in words)
    version = f'c++ --version | head -n 1 > "{given}{COMPILER_SUFFIX}"'
    return "\n".join(["set -eu", f"c++ {quoted}", version, ""])


def _compile(
    spec: ServiceSpec,
    compiler: Compiler,
    folder: Path,
    root: Path,
    interrupted: Interrupted,
    labels: Mapping[str, str],
) -> None:
    part = _description(spec)
    output = folder / part.output
    # What the compiler leaves when it is killed shall go with the folder.
    scratch = folder / "scratch"
    scratch.mkdir()
    # ziglang compiles its libraries when it is first used, and keeps them.
    kept = {name: str(root / "zig") for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
    variables = {"TMPDIR": str(scratch), "LC_ALL": "C", **kept, **labels}
    command = [*compiler.words, *part.words(spec.folder, str(output))]
    code, printed = run_command(command, interrupted, _during(spec), variables, spec.folder)
    if code:
        full = "No space left" in printed or "Disk quota exceeded" in printed
        why = FULL_DISK if full else f"{' '.join(compiler.words)} failed"
        last = "\n".join(printed.splitlines()[-LAST_LINES:])
        raise ServiceFailed(spec.name, f"it cannot be compiled: {why}", last)
    _note(output).write_text(f"{compiler.version}\n")
    shutil.rmtree(scratch)


def _place(spec: ServiceSpec, root: Path, compiler: Compiler) -> Path:
    """Return the folder that is named by all that the program depends on."""
    part = _description(spec)
    digest = hashlib.sha256()
    known = [*compiler.words, compiler.version, platform.machine(), *part.words(spec.folder, "")]
    digest.update("\0".join(known).encode())
    for folder in sorted({(spec.folder / file).parent for file in part.files(spec.folder)}):
        digest.update(content_hash(folder).encode())
    return root / f"{spec.name}-{digest.hexdigest()[:12]}"


def _description(spec: ServiceSpec) -> Compile:
    if spec.compile is None:
        raise StackError(f"service '{spec.name}' has no [compile] in its service.toml")
    return spec.compile


def _note(output: Path) -> Path:
    return output.with_name(f"{output.name}{COMPILER_SUFFIX}")


def _during(spec: ServiceSpec) -> str:
    return f"while {spec.name} was compiled"


@contextlib.contextmanager
def _alone(lock: Path, interrupted: Interrupted, during: str) -> Iterator[None]:
    """Be the only process that makes this; the kernel frees the lock of one that dies."""
    with lock.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                go_on(interrupted, during)
                time.sleep(LOOK_EVERY_S)
        yield
