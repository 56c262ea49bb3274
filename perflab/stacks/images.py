"""Build images of the services from their folders when the content has changed."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docker.errors import APIError, BuildError, ContainerError, ImageNotFound

from perflab.errors import ImageError
from perflab.paths import project_root
from perflab.stacks import builds
from perflab.stacks.backend import PROJECT
from perflab.stacks.builds import content_hash, files_of, plain
from perflab.stacks.patience import NO_WORK, Work, patiently
from perflab.stacks.spec import ServiceSpec

BASE = "debian:bookworm-slim"
# For the image's own Python: its distributions, and the Debian packages beside them.
LISTING = """
import importlib.metadata, json, platform, subprocess
query = ["dpkg-query", "--show", "--showformat", "${Package}=${Version}\\n"]
print(json.dumps({
    "python": platform.python_version(),
    "distributions": {item.name: item.version for item in importlib.metadata.distributions()},
    "debian": subprocess.run(query, capture_output=True, text=True, check=True).stdout.split(),
}))
"""
# For an image without Python: what compiled its program, then the Debian packages.
COMPILED_LISTING = "cat \"$1\"; dpkg-query --show --showformat '${Package}=${Version}\\n'"
COMPILE_SCRIPT = "compile.sh"
CA_VARIABLES = ("PERFLAB_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


def ensure(client: Any, spec: ServiceSpec, work: Work = NO_WORK) -> tuple[str, str]:
    """Return tag and id of the service's image, and build it when its content has changed.

    Raises ImageError, with the last lines, where the base image is missing, or the build failed.
    The engine gives a build up when this process ends.
    """
    if spec.docker.image:
        return spec.docker.image, _named_image_id(client, spec)
    tag = f"perflab/{spec.name}:{content_hash(*spec.sources)}"
    try:
        return tag, str(client.images.get(tag).id)
    except ImageNotFound:
        work.tell(f"building the image of {spec.name} (once)")
    if not (spec.folder / "Dockerfile").is_file():
        raise ImageError(
            f"service '{spec.name}' has no Dockerfile in {spec.folder}: add one, or choose the "
            "backend 'process'"
        )
    if not spec.of_user:
        _ensure_base(client, work)

    def build() -> Any:
        return client.images.build(
            fileobj=_context(spec),
            custom_context=True,
            tag=tag,
            rm=True,
            forcerm=True,
            network_mode="host",
            labels={"perflab.project": PROJECT},
        )

    try:
        during = f"while the image of {spec.name} was built"
        image, _ = patiently(build, work.interrupted, during)
    except BuildError as error:
        ours = f"perflab.project={PROJECT}"
        client.images.prune(filters={"dangling": True, "label": ours})
        lines = [str(item.get("stream", "")).rstrip() for item in error.build_log]
        last = "\n".join(line for line in lines if line)[-2000:]
        raise ImageError(f"the image of '{spec.name}' cannot be built: {error}\n{last}") from None
    except APIError as error:
        raise ImageError(f"the image of '{spec.name}' cannot be built: {error}") from None
    return tag, str(image.id)


def _named_image_id(client: Any, spec: ServiceSpec) -> str:
    name = spec.docker.image
    try:
        return str(client.images.get(name).id)
    except (ImageNotFound, APIError) as error:
        raise ImageError(
            f"service '{spec.name}': the engine has no image '{name}' ({error.explanation}); build "
            f"it, or 'docker pull {name}'"
        ) from None


def versions(client: Any, tag: str, python: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of all that is installed in an image, by name, as its Python lists them.

    Raises ImageError where that fails.
    """
    printed = _printed(client, tag, [python, "-c", LISTING], labels)
    try:
        data = json.loads(printed)
    except ValueError as error:
        raise ImageError(f"the image {tag} does not say what it has installed: {error}") from None
    return {"python": data["python"]} | plain(data["distributions"]) | _debian(data["debian"])


def versions_of_compiled(
    client: Any, spec: ServiceSpec, tag: str, labels: Mapping[str, str]
) -> dict[str, str]:
    """Return an image's compiler, flags and libraries, and the version of every Debian package."""
    note = spec.docker.placeholders().get("program", "") + builds.COMPILER_SUFFIX
    printed = _printed(client, tag, ["sh", "-euc", COMPILED_LISTING, "sh", note], labels)
    compiler, *debian = printed.splitlines()
    return builds.described(spec, compiler) | _debian(debian)


def _printed(client: Any, tag: str, command: list[str], labels: Mapping[str, str]) -> str:
    """Run a command in a container of its own and return its output."""
    try:
        printed: bytes = client.containers.run(
            tag, command, remove=True, network_mode="none", user="65534:65534",
            cap_drop=["ALL"], labels=dict(labels),
        )  # fmt: skip
    except (APIError, ContainerError) as error:
        raise ImageError(f"the image {tag} does not say what it has installed: {error}") from None
    return printed.decode(errors="replace")


def _debian(packages: list[str]) -> dict[str, str]:
    return dict(f"debian:{line}".split("=", 1) for line in packages)


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
        raise ImageError(f"{BASE} cannot be had: {(done.stdout + done.stderr).strip()[-1500:]}")


def ca_bundle() -> Path | None:
    """Return the host's CA bundle if one is configured (networks that intercept TLS need it)."""
    paths = [Path(os.environ.get(name, "")) for name in CA_VARIABLES]
    return next((path for path in paths if path.is_file()), None)


def _context(spec: ServiceSpec) -> io.BytesIO:
    """Return the build context as a tar: sources, ``common/``, ``compile.sh``, the CA bundle."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        if spec.compile:
            _add_bytes(archive, COMPILE_SCRIPT, builds.script(spec).encode())
        for folder, within in zip(spec.sources, ("", "common"), strict=False):
            for path in files_of(folder):
                archive.add(path, arcname=str(within / path.relative_to(folder)))
        _add_bytes(archive, "ca/.keep", b"")
        bundle = ca_bundle()
        if bundle:
            _add_bytes(archive, "ca/host.crt", bundle.read_bytes())
    buffer.seek(0)
    return buffer


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
