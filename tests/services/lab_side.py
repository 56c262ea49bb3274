"""JupyterLab as ``make notebook`` opens it, with a copy of the notebooks, and a person at it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil
from running import wait_until
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from perflab.paths import notebooks_dir, project_root

PATIENCE_S = 90.0
# A cell that waits, or is under way, has a star at its prompt.
UNDER_WAY = """
return [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")]
    .filter((each) => each.textContent.trim() === "[*]:").length
"""
BEGUN = """
return [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")]
    .some((each) => /\\[[0-9]+\\]/.test(each.textContent))
"""
# Cells that are out of sight would else be no part of the page.
ALL_CELLS = {"windowingMode": "none"}

IDLE = """
const indicator = document.querySelector(".jp-Notebook-ExecutionIndicator");
return indicator !== null && indicator.dataset.status === "idle"
"""
SHOWN = """
return [...document.querySelectorAll(".jp-OutputArea-output")]
    .map((each) => each.innerText).join("\\n")
"""


@dataclass
class Lab:
    """A JupyterLab that is running, and the folder of its notebooks."""

    url: str
    token: str
    port: int
    pid: int
    folder: Path

    def notebook(self, name: str) -> Any:
        """Return a notebook as it was saved."""
        return nbformat.read(self.folder / f"{name}.ipynb", as_version=4)

    def outputs(self, name: str) -> list[Any]:
        """Return all outputs of a notebook as it was saved."""
        cells = self.notebook(name).cells
        return [output for cell in cells for output in cell.get("outputs", [])]

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
    own = {
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
            cwd=project_root(), env={**os.environ, **{k: str(v) for k, v in own.items()}},
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(lambda: any(runtime.glob("jpserver-*.json")), timeout_s=PATIENCE_S)
        time.sleep(0.2)
        (told,) = runtime.glob("jpserver-*.json")
        words = json.loads(told.read_text())
        yield Lab(words["url"], words["token"], words["port"], words["pid"], folder)
    finally:
        family = psutil.Process(made.pid).children(recursive=True)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(made.pid, number)
            _, family = psutil.wait_procs(family, timeout=10)
        made.wait()


class Person:
    """Somebody at a notebook in the browser."""

    def __init__(self, driver: Chrome, lab: Lab, name: str) -> None:
        self._driver, self._lab, self.name = driver, lab, name
        driver.switch_to.new_window("window")
        driver.set_window_size(1300, 1000)
        driver.get(f"{lab.url}lab/tree/{name}.ipynb?token={lab.token}&reset")
        self.wait(lambda: self.find(".jp-NotebookPanel .jp-Cell"))
        # What is asked of a kernel that is still being connected is answered with a dialog.
        self.wait(self._is_idle)

    def find(self, selector: str) -> list[Any]:
        return self._driver.find_elements(By.CSS_SELECTOR, selector)

    def script(self, text: str) -> Any:
        return self._driver.execute_script(text)

    def wait(self, true: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
        wait_until(lambda: bool(true()), timeout_s=timeout_s)

    def choose(self, menu: str, name: str) -> None:
        """Choose an entry of a menu by its name."""
        assert [each.text for each in self.find(".jp-Dialog")] == []
        (bar,) = (each for each in self.find(".lm-MenuBar-item") if each.text == menu)
        bar.click()
        self.wait(lambda: self._entries(name))
        self._entries(name)[0].click()

    def _entries(self, name: str) -> list[Any]:
        return [each for each in self.find(".lm-Menu-itemLabel") if each.text == name]

    def run_all(self) -> None:
        self.choose("Run", "Run All Cells")

    def stop(self) -> None:
        """Press the stop button."""
        self.find('[data-command="notebook:interrupt-kernel"], '
                  'jp-button[data-command="notebook:interrupt-kernel"]')[0].click()  # fmt: skip

    def wait_done(self) -> None:
        """Wait until no cell is under way, nor waits."""
        self.wait(self._is_at_rest, 150.0)

    def _is_idle(self) -> bool:
        return bool(self.script(IDLE))

    def _is_at_rest(self) -> bool:
        # Between two cells a kernel is idle, too.
        for _ in range(4):
            if self.script(UNDER_WAY) or not self.script(BEGUN) or not self._is_idle():
                return False
            time.sleep(0.25)
        return True

    def save(self) -> list[Any]:
        """Save; return the outputs as they are on disk."""
        path = self._lab.folder / f"{self.name}.ipynb"
        before = path.stat().st_mtime_ns
        self.choose("File", "Save Notebook")
        self.wait(lambda: path.stat().st_mtime_ns != before)
        time.sleep(0.5)
        return self._lab.outputs(self.name)

    def shown(self) -> str:
        """Return the text of all outputs that are on the page."""
        # In one step: outputs are replaced while they are looked at.
        return str(self.script(SHOWN))

    def seen(self, selector: str) -> int:
        """Return how many parts of the page have a size on it."""
        return sum(each.size["height"] > 100 for each in self.find(selector))

    def leave(self) -> None:
        """Close the window, and end the kernel."""
        self.choose("Kernel", "Shut Down Kernel")
        time.sleep(1)
        self._driver.close()
        self._driver.switch_to.window(self._driver.window_handles[0])
