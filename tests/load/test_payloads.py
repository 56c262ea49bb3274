"""Bodies of bytes and of files, in all clients; checksums of bodies that nobody keeps."""

from __future__ import annotations

import asyncio
import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from perflab.errors import LoadError, ParameterError
from perflab.load.generator import Generator
from perflab.load.options import LoadOptions
from perflab.load.payload import BytesBody, FileBody, checksum
from perflab.load.workload import Request, Workload
from tests.load.meter import PIECE, Meter, crc32_of, drive, on_loop, patterned

CLIENTS = ("lean", "aiohttp", "httpx")
MIB = 1 << 20


def work(client: str = "lean", users: int = 1, **request: Any) -> Workload:
    return Workload.model_validate(
        {
            "request": request, "client": client,
            "arrivals": {"kind": "closed", "users": users, "requests": 1},
        }
    )  # fmt: skip


def sent(load: Workload, requests: int = 2, **options: Any) -> tuple[list[str], Meter]:
    """Send a load's requests; return error classes, and what the server saw."""
    meter = Meter(**options)

    async def go() -> list[str]:
        async with meter as url:
            return await drive(load, url, requests)

    return on_loop(go), meter


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(CLIENTS), st.binary(max_size=300))
def test_any_bytes_arrive_as_they_are(client: str, body: bytes) -> None:
    load = work(client, method="POST", body=body)
    assert Workload.model_validate_json(load.model_dump_json()) == load
    errors, meter = sent(load)
    assert errors == [""] * 2
    for each in (taken for seen in meter.seen for taken in seen.taken):
        assert (each.size, each.sha256) == (len(body), sha256(body).hexdigest())
        assert b"content-type: application/octet-stream" in each.head or not body


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("size", [0, 1, 65_536, 5 * MIB + 3])
def test_a_file_arrives_whole_with_its_length(tmp_path: Path, client: str, size: int) -> None:
    path = patterned(tmp_path / "body", size)
    errors, meter = sent(work(client, method="PUT", body={"file": str(path)}, users=2))
    assert errors == [""] * 4
    taken = [each for seen in meter.seen for each in seen.taken]
    assert {each.size for each in taken} == {size}
    assert {each.sha256 for each in taken} == {sha256(path.read_bytes()).hexdigest()}
    assert all(b"transfer-encoding" not in each.head for each in taken)


def test_a_plan_names_a_file_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "body").write_bytes(b"as planned")
    monkeypatch.chdir(tmp_path)
    request = Request(method="POST", body=FileBody.of("body"))
    words = json.loads(request.model_dump_json())["body"]
    assert words == {
        "file": str(tmp_path / "body"),
        "size_bytes": 10,
        "sha256": sha256(b"as planned").hexdigest(),
    }
    assert Request.model_validate({"method": "POST", "body": words}) == request


@pytest.mark.parametrize("changed", [b"AS PLANNED", b"as planned, and more", None])
def test_a_file_that_was_changed_since_is_refused_before_anything_is_sent(
    tmp_path: Path, changed: bytes | None
) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"as planned")
    load = work(method="POST", body={"file": str(path)})
    path.unlink() if changed is None else path.write_bytes(changed)
    generator = Generator([], {})
    with pytest.raises(LoadError, match=r"was changed since|No such file"):
        generator.run(load, "http://127.0.0.1:9/")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_that_shrinks_while_it_is_sent_fails_its_requests_only(
    tmp_path: Path, client: str
) -> None:
    path = patterned(tmp_path / "body", 100_000)
    load = work(client, method="POST", body={"file": str(path)})

    async def go() -> list[str]:
        async with Meter() as url:
            return await drive(load, url, 3, between=lambda: os.truncate(path, 50_000))

    assert on_loop(go) == ["", "body_file", "body_file"]


def test_files_that_cannot_be_bodies_are_refused(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none", "No such file"), (tmp_path, "no plain file")):
        with pytest.raises(ValidationError, match=reason):
            FileBody.of(path)
    with pytest.raises(ValidationError, match="not base64"):
        BytesBody(base64="a")


def test_rows_fill_text_only() -> None:
    with pytest.raises(ValidationError, match="placeholders are filled in text"):
        Request(method="POST", body=b"$v", data=({"v": 1},))


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("flaw_at", "expected", "kind"),
    [
        (-1, {"expect_crc32": crc32_of(200_000)}, ""),
        (-1, {"expect_bytes": 200_000}, ""),
        (0, {"expect_crc32": crc32_of(200_000)}, "checksum"),
        (199_999, {"expect_crc32": crc32_of(200_000)}, "checksum"),
        (131_072, {"expect_sha256": sha256((PIECE * 4)[:200_000]).hexdigest()}, "checksum"),
        (-1, {"expect_sha256": sha256((PIECE * 4)[:200_000]).hexdigest()}, ""),
        (-1, {"expect_bytes": 200_001, "expect_crc32": 0}, "length"),
    ],
)
def test_one_wrong_bit_of_a_long_body_is_an_error_of_its_own(
    client: str, flaw_at: int, expected: dict[str, Any], kind: str
) -> None:
    errors, _ = sent(work(client, path="/200000", **expected), flaw_at=flaw_at)
    assert errors == [kind] * 2


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_bodies_of_any_length_take_no_memory(tmp_path: Path) -> None:
    # 256 MiB each way through one process that is client and server: neither may hold them.
    size = 256 * MIB
    path = patterned(tmp_path / "body", size)
    large = {"method": "POST", "path": f"/{size}", "expect_crc32": checksum(path)[1]}
    before, seen = resident_bytes(), [0]

    async def look() -> None:
        while True:
            seen.append(resident_bytes())
            await asyncio.sleep(0.001)

    async def go() -> list[str]:
        async with Meter() as url:
            looking = asyncio.create_task(look())
            errors = await drive(work(body={"file": str(path)}, **large), url, 1)
            looking.cancel()
            return errors

    assert on_loop(go) == [""]
    assert len(seen) > 50
    assert max(seen) - before < 48 * MIB


def asked(**options: Any) -> Workload:
    return LoadOptions.of({"url": "http://127.0.0.1:9/x", "users": 1, **options}).workload()


def test_the_command_line_sends_files(tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"\x00\xff")
    made = asked(body_file=str(path), expect_bytes=4)
    request = made.request
    assert request.method == "POST"
    assert isinstance(request.body, FileBody)
    assert request.expect_bytes == 4


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"body_file": "/no/such"}, "--body-file: the body's file /no/such: No such file"),
        ({"body_file": __file__, "body": "x"}, "--body does not go with --body-file"),
        ({"connection": "closed"}, "--connection 'closed': Input should be 'keep-alive' or 'per-"),
        (
            {"connection": "per-request", "requests_per_connection": 3},
            "give --connection per-request or --requests-per-connection",
        ),
        ({"churn": 1.0, "http2": True}, "the http2 client closes no connection after"),
        ({"churn": -1.0}, "--churn -1.0: Input should be greater"),
        ({"requests_per_connection": -1}, "--requests-per-connection -1: Input should be greater"),
        ({"idle": 1.0, "http2": True}, "the http2 client closes an idle connection only when"),
        ({"burst": 0, "users": -1}, "--users -1: Input should be greater"),
        (
            {"headers": ["Authorization secret"]},
            "--header: 'Authorization secret' is not like 'Name",
        ),
        ({"use": 1}, "no option 'use' (did you mean 'users'?)"),
    ],
)
def test_what_the_command_line_cannot_do_is_told(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ParameterError) as refused:
        asked(**options)
    assert any(problem in each for each in refused.value.problems), refused.value.problems
