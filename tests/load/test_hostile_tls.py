"""TLS with the lean client: certificates, and peers that end, stall or speak no TLS."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from perflab.load.workload import Request
from perflab.load.workload.workload import Trust
from tests.load.hostile import ClientReport, End, Hostile, Script, check, on_uvloop, send
from tests.load.meter import Meter
from tests.load.processes import a_certificate


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return a_certificate(tmp_path_factory.mktemp("tls"))


async def over_tls(
    certificate: tuple[Path, Path], count: int, host: str = "127.0.0.1", **client: Any
) -> ClientReport:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    async with Meter(context, host=host) as url:
        return await send(url, count, request=Request(path="/300000"), **client)


def test_tls_works_with_a_trusted_certificate_and_is_refused_without(
    certificate: tuple[Path, Path],
) -> None:
    trusting = Trust(ca_file=str(certificate[1]))
    trusted = on_uvloop(lambda: over_tls(certificate, 5, trust=trusting))
    assert trusted.outcomes == [("", 200, 300_000)] * 5
    assert on_uvloop(lambda: over_tls(certificate, 2)).errors == ["tls", "tls"]
    careless = on_uvloop(lambda: over_tls(certificate, 2, trust=Trust(verify=False)))
    assert careless.errors == ["", ""]


def test_certificates_that_cannot_be_read_or_name_another_host_are_tls_errors(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for path in (tmp_path / "missing.pem", empty):
        trust = Trust(ca_file=str(path))
        report = on_uvloop(lambda trust=trust: over_tls(certificate, 2, trust=trust))
        check(report, 2)
        assert report.errors == ["tls", "tls"]
    options = {"trust": Trust(ca_file=str(certificate[1])), "host": "127.0.0.2"}
    assert on_uvloop(lambda: over_tls(certificate, 1, **options)).errors == ["tls"]


@pytest.mark.parametrize(
    ("end", "kind", "timeout_s"),
    [("close", "tls", 5.0), ("reset", "tls", 5.0), ("hang", "timeout", 0.1)],
)
def test_a_server_that_ends_in_the_handshake_or_is_silent_has_its_class(
    end: End, kind: str, timeout_s: float
) -> None:
    async def work() -> ClientReport:
        async with Hostile([Script((), end, reads=False)]) as url:
            return await send(url.replace("http:", "https:"), 2, timeout_s=timeout_s)

    report = on_uvloop(work)
    check(report, 2)
    assert report.errors == [kind] * 2
