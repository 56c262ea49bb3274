"""The command line as its user types it, and as its help says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from perflab import systems
from perflab.cli import app
from perflab.host.lock import measurement_lock
from perflab.parameters import parse_assignments
from perflab.paths import project_root
from tests.cli.conftest import Tell
from tests.golden.recordings import write_recording

PERFLAB = str(Path(sys.executable).with_name("perflab"))


def typed(*words: str, code: int = 0) -> str:
    """Type a command as a separate process, which takes seconds to import."""
    done = subprocess.run([PERFLAB, *words], capture_output=True, text=True, timeout=280)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_help_names_every_command(perflab: Tell, tmp_path: Path) -> None:
    text = typed("--help")
    words = "lab run duel sweep runs show compare claims export experiments load import new doctor"
    for command in (*words.split(), "stack", "worker"):
        assert command in text
        assert "--help" in perflab(tmp_path, command, "--help")[0]


def test_errors_are_sentences_not_tracebacks(perflab: Tell, tmp_path: Path) -> None:
    text = typed("run", "synchronous_comit", code=2)
    assert "did you mean 'synchronous_commit'" in text
    assert "Traceback" not in text
    for words, expected in (
        (["run", "synchronous_commit", "-p", "blokcs=2"], "did you mean 'blocks'"),
        (["run"], "no experiment is named"),
        (["runs", "--experiment", "sync_vs_asinc"], "did you mean 'sync_vs_async'"),
        (["claims", "--study", "inferense"], "did you mean 'inference'"),
        (["claims", "--outcome", "as publisht"], "did you mean 'as published'"),
        (["claims", "--check", "--study", "chats"], "did you mean 'chat'"),
        (["stack", "up", "inferense"], "did you mean 'inference'"),
        (["stack", "logs", "nothing"], "no service"),
        (["run", "synchronous_commit", "--backend", "podman"], "backend"),
    ):
        assert expected in perflab(tmp_path, *words, code=2)[1]
    assert "no run" in perflab(tmp_path, "show", "nosuchrun", code=1)[1]


@pytest.mark.parametrize(
    ("words", "ignored"),
    [
        (
            ["export", "latest", "--figures", "--into", "design.md", "--full", "--overwrite"],
            ["--into does not go with --figures", "--full does not", "--overwrite does not"],
        ),
        (
            ["export", "--verify", "docs", "--format", "png", "--views", "effect", "--figures"],
            ["--format does not go with --verify", "--views does not", "--figures does not"],
        ),
        (["export", "--verify", "--to", "docs"], ["--to does not go with --verify"]),
        (
            ["claims", "--check", "--outcome", "judged", "--backend", "docker"],
            ["--outcome does not go with --check", "--backend does not go with --check"],
        ),
    ],
)
def test_an_option_that_would_be_ignored_is_refused_before_anything_is_done(
    words: list[str], ignored: list[str], perflab: Tell, tmp_path: Path
) -> None:
    errors = perflab(tmp_path, *words, code=2)[1]
    assert "nothing was started" in errors
    assert [told for told in ignored if told not in errors] == []


@pytest.mark.slow
def test_a_stack_can_be_put_up_looked_at_and_taken_down(perflab: Tell, tmp_path: Path) -> None:
    try:
        assert "http://127.0.0.1:" in typed("stack", "up", "inference", "--backend", "process")
        listed = typed("stack", "ps")
        for service in ("postgres", "link", "inference"):
            assert service in listed
        assert "ready to accept connections" in perflab(tmp_path, "stack", "logs", "postgres")[0]
    finally:
        removed = typed("stack", "down")
    assert "inference" in removed
    assert "no services are up" in perflab(tmp_path, "stack", "ps")[0]


Command = Any


def commands(parent: Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Command]]:
    """Yield every command and subcommand, each with its words."""
    for name, command in sorted(parent.commands.items()):
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


EVERY = dict(commands(typer.main.get_command(app)))


def examples(help_text: str) -> list[str]:
    """Return the examples of a help text, each in one line."""
    paragraphs = re.split(r"\n\s*\n", help_text)
    texts = [text.strip() for text in paragraphs if text.strip().startswith("Example: ")]
    return [" ".join(text.removeprefix("Example: ").split()) for text in texts]


@pytest.mark.parametrize("called", EVERY)
def test_every_example_is_read_by_the_command_s_own_parser(called: str) -> None:
    command = EVERY[called]
    shown = examples(command.help or "")
    assert shown, f"'perflab {called} --help' has no example"
    for example in shown:
        words = shlex.split(example)
        length = len(called.split()) + 1
        assert words[:length] == ["perflab", *called.split()], example
        given = command.make_context(called, words[length:]).params
        if called == "run" and given["name"]:
            systems.experiment(given["name"]).check(parse_assignments(given["parameter"]))


@pytest.mark.slow
def test_a_resumed_duel_says_how_to_repeat_it(perflab: Tell, tmp_path: Path) -> None:
    run = write_recording(tmp_path, "custom_service/against")
    output = perflab(tmp_path, "duel", "--resume", run.run_id, PERFLAB_FIGURES=str(tmp_path))[0]
    (repeat,) = [line for line in output.splitlines() if line.startswith("repeat: ")]
    assert repeat.startswith("repeat: perflab run custom_service")
    assert "resume" not in repeat


@pytest.mark.promise
def test_a_job_that_is_cancelled_ends_its_command_in_order() -> None:
    """As a CI server does it; here the command waits for another measurement."""
    with measurement_lock("another run"):
        child = subprocess.Popen(
            [sys.executable, "-c", "from perflab.cli import main; main()", "run",
             "client_overhead", "--backend", "process", "--wait", "60"],
            cwd=project_root(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert child.stderr is not None
        while "another run" not in child.stderr.readline():
            assert child.poll() is None
        child.terminate()
        try:
            _, said = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 130
    assert "the run was interrupted" in said
