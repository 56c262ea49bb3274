"""JupyterLab as ``make notebook`` opens it, with a copy of the notebooks, and a person at it."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil
from running import wait_until
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    StaleElementReferenceException,
)
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from perflab.paths import notebooks_dir, project_root

PATIENCE_S = 90.0
# Every cell has run; or one failed, which is shown as stderr, and none waits or is under way: such
# have a star at their prompts.
RUN = """
const prompts = [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")]
    .map((each) => each.textContent.trim());
const failed = document.querySelector('.jp-OutputArea [data-mime-type$=".stderr"]') !== null;
return prompts.length > 0 && !prompts.includes("[*]:")
    && (failed || prompts.every((each) => /^\\[[0-9]+\\]:$/.test(each)))
"""
# Cells that are out of sight would else be no part of the page.
ALL_CELLS = {"windowingMode": "none"}

# By the kernel's name the page decides whether there is one; its indicator begins as idle.
IDLE = """
const indicator = document.querySelector(".jp-Notebook-ExecutionIndicator");
const kernel = document.querySelector(".jp-Toolbar-kernelName");
return indicator !== null && indicator.dataset.status === "idle"
    && kernel !== null && !["", "No Kernel"].includes(kernel.textContent.trim())
"""
SHOWN = """
return [...document.querySelectorAll(".jp-OutputArea-output")]
    .map((each) => each.innerText).join("\\n")
"""
LARGE = """
return [...document.querySelectorAll(arguments[0])]
    .filter((each) => each.getBoundingClientRect().height > 100).length
"""
# An entry that would do nothing is grey.
ENTRY = ".lm-Menu-item:not(.lm-mod-disabled) .lm-Menu-itemLabel"
# The page draws its parts anew whenever a command changes.
REDRAWN = (
    StaleElementReferenceException, ElementNotInteractableException,
    ElementClickInterceptedException,
)  # fmt: skip


@dataclass
class Lab:
    """A JupyterLab that is running, and the folder of its notebooks."""

    url: str
    token: str
    port: int
    pid: int
    folder: Path

    def kernel(self, name: str) -> dict[str, Any]:
        """Return what the server says of the kernel of a notebook; nothing where it has none."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            line.request("GET", "/api/sessions", headers={"Authorization": f"token {self.token}"})
            sessions = json.loads(line.getresponse().read())
        finally:
            line.close()
        kernels = (item["kernel"] for item in sessions if item["path"].endswith(f"/{name}.ipynb"))
        return dict(next(kernels, {}))

    def give(self, name: str, parameters: Mapping[str, object]) -> None:
        """Write values into the parameters cell, as a person does, and save."""
        notebook = nbformat.read(notebooks_dir() / f"{name}.ipynb", as_version=4)
        (cell,) = (c for c in notebook.cells if "parameters" in c.metadata.get("tags", []))
        given = [f"{key} = {value!r}" for key, value in parameters.items()]
        cell.source = "\n".join([cell.source, *given])
        nbformat.write(notebook, self.folder / f"{name}.ipynb")


@contextmanager
def jupyterlab(root: Path) -> Iterator[Lab]:
    """Run ``make notebook`` with settings and notebooks of its own."""
    folder, runtime = root / "notebooks", root / "runtime"
    shutil.copytree(notebooks_dir(), folder)
    places = {
        "JUPYTER_RUNTIME_DIR": runtime,
        "JUPYTER_CONFIG_DIR": root / "config",
        "JUPYTER_DATA_DIR": root / "data",
        "IPYTHONDIR": root / "ipython",
    }
    settings = root / "config" / "lab" / "user-settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    (settings / "tracker.jupyterlab-settings").write_text(json.dumps(ALL_CELLS))
    with (root / "log").open("wb") as log:
        made = subprocess.Popen(
            ["make", "notebook", f"NOTEBOOKS={folder}", "ARGS=--no-browser"],
            cwd=project_root(), env={**os.environ, **{k: str(v) for k, v in places.items()}},
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(lambda: bool(_told(runtime)), timeout_s=PATIENCE_S)
        words = _told(runtime)
        yield Lab(words["url"], words["token"], words["port"], words["pid"], folder)
    finally:
        family = psutil.Process(made.pid).children(recursive=True)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(made.pid, number)
            _, family = psutil.wait_procs(family, timeout=10)
        made.wait()


def _told(runtime: Path) -> dict[str, Any]:
    """Return what a server says of itself; nothing before it has written that to its end."""
    texts = [_read(path) for path in runtime.glob("jpserver-*.json")]
    return dict(json.loads(texts[0])) if texts and texts[0] else {}


def _read(path: Path) -> str:
    """Return a file of JSON, or nothing while the server writes over it in its place."""
    text = path.read_text()
    with suppress(ValueError):
        json.loads(text)
        return text
    return ""


class Person:
    """Somebody at a notebook in the browser."""

    def __init__(self, driver: Chrome, lab: Lab, name: str) -> None:
        self._driver, self._lab, self.name = driver, lab, name
        driver.switch_to.new_window("window")
        driver.set_window_size(1300, 1000)
        driver.get(f"{lab.url}lab/tree/{lab.folder.name}/{name}.ipynb?token={lab.token}&reset")
        self.wait(lambda: self.find(".jp-NotebookPanel .jp-Cell"))
        # A cell that is run before the page has its kernel is not run, or answered with a dialog.
        self.wait(lambda: self._is_connected() and self._is_idle())

    def find(self, selector: str) -> list[Any]:
        return self._driver.find_elements(By.CSS_SELECTOR, selector)

    def script(self, text: str, *values: object) -> Any:
        return self._driver.execute_script(text, *values)

    def wait(self, true: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
        wait_until(lambda: bool(true()), timeout_s=timeout_s)

    def choose(self, menu: str, name: str) -> None:
        """Choose an entry of a menu by its name, as soon as it can be chosen."""
        assert [dialog.text for dialog in self.find(".jp-Dialog")] == []
        self.wait(lambda: self._chosen(menu, name))

    def _chosen(self, menu: str, name: str) -> bool:
        """Click an entry; where it is not there, or grey, close the menu: the next try opens it."""
        try:
            if not self.find(".lm-Menu"):
                self._clicked(".lm-MenuBar-item", menu)
            if self._clicked(ENTRY, name):
                return True
            ActionChains(self._driver).send_keys(Keys.ESCAPE).perform()
        except REDRAWN:
            pass
        return False

    def _clicked(self, selector: str, text: str) -> bool:
        """Click what has a text; return whether it is there."""
        for element in self.find(selector):
            if element.text == text:
                element.click()
                return True
        return False

    def run_all(self) -> None:
        self.choose("Run", "Run All Cells")

    def stop(self) -> None:
        """Press the stop button."""
        self.wait(self._stopped)

    def _stopped(self) -> bool:
        with suppress(*REDRAWN):
            for element in self.find('[data-command="notebook:interrupt-kernel"]')[:1]:
                element.click()
                return True
        return False

    def wait_done(self) -> None:
        """Wait until every cell has run, or one has failed; the kernel rests then."""
        self.wait(self._is_at_rest, 150.0)

    def _is_idle(self) -> bool:
        return bool(self.script(IDLE))

    def _is_connected(self) -> bool:
        kernel = self._lab.kernel(self.name)
        return kernel.get("connections", 0) > 0 and kernel["execution_state"] == "idle"

    def _is_at_rest(self) -> bool:
        # Between a cell's number and the end of its outputs a kernel is busy.
        return bool(self.script(RUN)) and self._is_idle() and self._is_connected()

    def save(self) -> list[Any]:
        """Save; return all outputs as they are on disk."""
        path = self._lab.folder / f"{self.name}.ipynb"
        before = path.stat().st_mtime_ns
        self.choose("File", "Save Notebook")
        self.wait(lambda: path.stat().st_mtime_ns != before and _read(path))
        cells = nbformat.reads(_read(path), as_version=4).cells
        return [output for cell in cells for output in cell.get("outputs", [])]

    def shown(self) -> str:
        """Return the text of all outputs that are on the page."""
        # In one step: outputs are replaced while they are looked at.
        return str(self.script(SHOWN))

    def seen(self, selector: str) -> int:
        """Return how many parts of the page have a size on it."""
        return int(self.script(LARGE, selector))

    def leave(self) -> None:
        """Close the window, and end the kernel."""
        self.choose("Kernel", "Shut Down Kernel")
        # Whoever opened the notebook before that would be given this kernel.
        self.wait(lambda: not self._lab.kernel(self.name))
        self._driver.close()
        self._driver.switch_to.window(self._driver.window_handles[0])
