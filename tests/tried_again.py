"""Tests that measure are tried again where they fail; no others are, and nothing of it is hidden.

What a busy machine does to a clock or a rate says nothing about the code. A promise that is broken
fails each time, and so does the test. Each try has the whole limit of time (`timeout`); a test that
reached it is not tried again.
"""

from __future__ import annotations

from typing import Any

import pytest

MEASURING = ("alone", "measures")
RERUNS = 2
HUNG = r"^Failed: Timeout"
LIMIT = pytest.StashKey[Any]()


__all__ = [
    "pytest_collection_modifyitems",
    "pytest_runtest_setup",
    "pytest_terminal_summary",
    "pytest_timeout_set_timer",
]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give tests that measure two more tries, where the plugin that tries again is loaded."""
    if not config.pluginmanager.hasplugin("rerunfailures"):
        return
    again = pytest.mark.flaky(reruns=RERUNS, rerun_except=HUNG)
    for item in items:
        if any(item.get_closest_marker(name) for name in MEASURING):
            item.add_marker(again)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """Keep the limit of time of a test for its further tries."""
    item.stash[LIMIT] = settings


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Limit a further try: the failure of the first one ended its limit of time."""
    if getattr(item, "execution_count", 1) > 1 and LIMIT in item.stash:
        item.ihook.pytest_timeout_set_timer(item=item, settings=item.stash[LIMIT])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List every try that failed and was followed by another, with what was wrong."""
    reports = terminalreporter.getreports("rerun")
    if not reports:
        return
    terminalreporter.section("tried again")
    for report in reports:
        terminalreporter.line(f"tried again: {report.nodeid} ({_reason(report)})")


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    lines = text.strip().splitlines()
    return lines[0] if lines else "no reason given"
