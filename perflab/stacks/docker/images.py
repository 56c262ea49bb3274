"""Build images of the services from their folders when the content has changed."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

from docker.errors import APIError, BuildError, ContainerError, ImageNotFound

from perflab.errors import ImageError
from perflab.paths import project_root
from perflab.stacks import compiler
from perflab.stacks.backend import PROJECT
from perflab.stacks.builds import content_hash, files_of, plain
from perflab.stacks.commands import NO_WORK, Work, patiently
from perflab.stacks.spec import ServiceSpec

BASE = "debian:bookworm-slim"
# Debian packages, what the image's own Python ($1) has installed, and the compiler in the note $2.
LISTING = """
dpkg-query --show --showformat 'debian:${Package}=${Version}\\n'
if [ -n "$1" ]; then "$1" - <<'END'
import importlib.metadata, platform
print(f"python={platform.python_version()}")
for item in importlib.metadata.distributions():
    print(f"{item.name}={item.version}")
END
fi
if [ -n "$2" ]; then sed 's/^/compiler=/' "$2"; fi
"""
COMPILE_SCRIPT = "compile.sh"
CA_VARIABLES = ("PERFLAB_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


def ensure(client: Any, spec: ServiceSpec, work: Work = NO_WORK) -> tuple[str, str]:
    """Return tag and id of the service's image, and build it when its content has changed.

    Raises ImageError, with the last lines, where the base image is missing, or the build failed.
    The engine gives a build up when this process ends.
    """
    if name := spec.docker.image:
        try:
            return name, str(client.images.get(name).id)
        except APIError as error:
            raise ImageError(
                f"service '{spec.name}': the engine has no image '{name}' ({error.explanation}); "
                f"build it, or 'docker pull {name}'"
            ) from None
    tag = f"perflab/{spec.name}:{content_hash(*spec.sources)}"
    try:
        return tag, str(client.images.get(tag).id)
    except ImageNotFound:
        work.tell(f"building the image of {spec.name} (once)")
    if not spec.of_user:
        _ensure_base(client, work)

    build = partial(
        client.images.build, fileobj=_context(spec), custom_context=True, tag=tag, rm=True,
        forcerm=True, network_mode="host", labels={"perflab.project": PROJECT},
    )  # fmt: skip
    try:
        during = f"while the image of {spec.name} was built"
        image, _ = patiently(build, work.interrupted, during)
    except (APIError, BuildError) as error:
        log = [str(item.get("stream", "")).rstrip() for item in getattr(error, "build_log", ())]
        if log:
            ours = f"perflab.project={PROJECT}"
            client.images.prune(filters={"dangling": True, "label": ours})
        last = "\n".join(filter(None, log))[-2000:]
        raise ImageError(f"the image of '{spec.name}' cannot be built: {error}\n{last}") from None
    return tag, str(image.id)


def versions(client: Any, spec: ServiceSpec, tag: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of all packages in an image, and of its compiler, by name.

    A short-lived container lists them; ImageError where it fails. An image that the user brought is
    not opened, so it has none: only the lab's own images say where their Python or program is.
    """
    paths = spec.docker.placeholders()
    python, program = paths.get("python", ""), paths.get("program", "")
    if not python and not spec.compile:
        return {}
    note = f"{program}{compiler.COMPILER_SUFFIX}" if spec.compile else ""
    try:
        printed: bytes = client.containers.run(
            tag, ["sh", "-euc", LISTING, "sh", python, note], remove=True, network_mode="none",
            user="65534:65534", cap_drop=["ALL"], labels=dict(labels), use_config_proxy=False,
        )  # fmt: skip
    except (APIError, ContainerError) as error:
        raise ImageError(f"the packages in image {tag} cannot be listed: {error}") from None
    lines = printed.decode(errors="replace").splitlines()
    listed = dict(line.split("=", 1) for line in lines)
    made_by = listed.pop("compiler", "")
    debian = {name: listed.pop(name) for name in list(listed) if name.startswith("debian:")}
    return plain(listed) | debian | (compiler.described(spec, made_by) if spec.compile else {})


def _ensure_base(client: Any, work: Work) -> None:
    """Pull the base image, or make it by the project's script, unless it exists."""
    try:
        client.images.get(BASE)
        return
    except ImageNotFound:
        work.tell(f"fetching {BASE}")
    script = project_root() / "scripts" / "base-image.sh"
    done = work.run([str(script)], "while the base image was made", {})
    if done.returncode:
        raise ImageError(
            f"the base image {BASE} cannot be made: {(done.stdout + done.stderr).strip()[-1500:]}"
        )


def _context(spec: ServiceSpec) -> IO[bytes]:
    """Return the build context as a tar: sources, ``common/``, ``compile.sh``, the CA bundle.

    It lies on disk: a user's folder may be larger than the memory.
    """
    buffer = tempfile.TemporaryFile()  # noqa: SIM115
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        if spec.compile:
            add_bytes(archive, COMPILE_SCRIPT, compiler.script(spec).encode())
        for folder, within in zip(spec.sources, ("", "common"), strict=False):
            for path in files_of(folder):
                archive.add(path, str(within / path.relative_to(folder)), recursive=False)
        add_bytes(archive, "ca/.keep", b"")
        # Networks that intercept TLS need the host's CA bundle.
        paths = [Path(os.environ.get(name, "")) for name in CA_VARIABLES]
        if bundle := next(filter(Path.is_file, paths), None):
            add_bytes(archive, "ca/host.crt", bundle.read_bytes())
    buffer.seek(0)
    return buffer


def add_bytes(archive: tarfile.TarFile, name: str, content: bytes, user: int = 0) -> None:
    """Add a file; one of another user than root is readable for that user only."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    if user:
        entry.mode, entry.uid, entry.gid = 0o600, user, user
    archive.addfile(entry, io.BytesIO(content))
