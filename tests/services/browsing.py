"""People at a page: windows of a real browser, driven by Selenium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

PROGRAMS = ("chromium", "chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # Chromium's sandbox refuses root, and the page is our own
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    # Nothing but the service can be reached, whatever the browser has in mind.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def missing_programs() -> list[str]:
    """Return the programs of a browser test that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


@contextmanager
def browsing(profile: Path) -> Iterator[Chrome]:
    """Run a browser on an empty profile; none of its processes outlives the block."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    family: list[psutil.Process] = []
    try:
        driver = Chrome(options, ChromeService(executable_path=shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            family += psutil.Process(driver.service.process.pid).children(recursive=True)
            driver.quit()
    finally:
        _, left = psutil.wait_procs([*family, *users_of(profile)], timeout=5)
        for process in left:
            process.kill()
        psutil.wait_procs(left, timeout=5)
        assert not users_of(profile)


def users_of(profile: Path) -> list[psutil.Process]:
    """Return the processes whose command names the profile: the crash handler has no parent."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(profile) in argument for argument in process.info["cmdline"] or ())
    ]
