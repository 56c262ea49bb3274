"""The registry's health page in a real browser, from its button to the results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import Tab
from health_side import HealthSide, bench
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.browser
BARS = """
return [...document.querySelectorAll("#waterfall rect")].map((bar) => [
    bar.getAttribute("class"), Number(bar.getAttribute("x")), Number(bar.getAttribute("width")),
    Number(bar.getAttribute("y"))])
"""
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def side(own_places: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HealthSide]:  # noqa: ARG001
    with bench(tmp_path_factory.mktemp("bench")) as running:
        yield running


class Page(Tab):
    """A window with the health page."""

    def __init__(self, driver: Any, side: HealthSide) -> None:
        super().__init__(driver, f"http://127.0.0.1:{side.port}/health/page")
        self.side = side

    def fill(self, **fields: object) -> Page:
        """Put values into fields; the token is the right one unless another is given."""
        for identity, value in ({"token": self.side.token} | fields).items():
            self.part(identity).clear()
            self.part(identity).send_keys(str(value))
        return self

    def start(self, **fields: object) -> Page:
        self.fill(**fields).part("start").click()
        return self

    def wait_ended(self) -> Page:
        self.wait(lambda: self.text("state").startswith("ended"))
        return self

    def figures(self) -> dict[str, str]:
        """Return the table of aggregates."""
        rows = self.part("figures").find_elements(By.TAG_NAME, "tr")
        cells = (row.find_elements(By.CSS_SELECTOR, "th, td") for row in rows)
        return {name.text: value.text for name, value in cells}

    def bars(self) -> list[tuple[str, float, float, float]]:
        """Return class, left edge, width and top of every bar of the waterfall."""
        return [tuple(bar) for bar in self.front().execute_script(BARS)]


def in_proportion(values: list[float]) -> list[float]:
    """Return where values stand between the first and the last."""
    first, last = values[0], values[-1]
    return [(value - first) / (last - first) for value in values]


@pytest.fixture
def page(browser: Any, side: HealthSide) -> Iterator[Page]:
    shown = Page(browser, side)
    yield shown
    shown.close()


def test_from_the_button_to_results_that_are_those_of_the_service(page: Page) -> None:
    page.complaints()
    page.load()
    page.start(clients=30, duration=20).wait_ended()
    assert page.text("state").startswith("ended: 30 of 30 downloads succeeded in ")
    results = page.side.look(page.text("name"))["results"]
    figures = page.figures()
    assert figures["succeeded"] == "30 of 30 (100.0%)"
    assert f"{results['throughput_bytes_per_s']:,.0f} bytes/s" in figures["throughput"]
    assert f"{results['throughput_MB_per_s']:,.2f} MB/s" in figures["throughput"]
    assert f"{results['throughput_MiB_per_s']:,.2f} MiB/s" in figures["throughput"]
    assert figures["latency, max"] == f"{results['latency']['max']['ms']:,.1f} ms"
    assert figures["latency, p99"].startswith("left out: a p99 needs 368 downloads")
    assert page.text("problem") == ""
    assert page.complaints() == []


def test_the_waterfall_shows_batches_as_stairs(page: Page) -> None:
    page.start(clients=30, duration=20).wait_ended()
    bars = page.bars()
    waits = [bar for bar in bars if bar[0] == "wait"]
    receives = [bar for bar in bars if bar[0] == "receive"]
    assert len(waits) == len(receives) == 30
    assert [top for *_, top in waits] == sorted({top for *_, top in waits})
    # Where each begins to receive is to scale: ten at a time are three stairs.
    requests = page.side.look(page.text("name"))["results"]["requests"]
    instants = in_proportion(sorted(each["first_byte_ms"] for each in requests))
    assert in_proportion(sorted(left for _, left, _, _ in receives)) == pytest.approx(
        instants, abs=0.01
    )
    page.front().find_element(By.CSS_SELECTOR, "#results summary").click()
    assert len(page.part("rows").find_elements(By.TAG_NAME, "tr")) == 30


def test_progress_is_shown_while_it_runs_and_timeouts_as_bounds(page: Page) -> None:
    page.start(clients=6, model="half", duration=6)
    page.wait(lambda: "3 done, 0 failed, 3 under way of 6" in page.text("counts"))
    assert float(page.part("bar").get_property("value")) == pytest.approx(0.5)
    assert not page.part("start").is_enabled()
    page.wait_ended()
    figures = page.figures()
    assert figures["timed out"] == "3"
    assert not figures["latency, min"].startswith("at least")
    assert figures["latency, max"].startswith("at least ")
    assert "Without success: 3 timed out." in page.text("note")
    assert [bar[0] for bar in page.bars()].count("lost") == 3


def test_a_wrong_token_is_told_and_can_be_mended_without_a_mouse(page: Page) -> None:
    page.start(token="x" * 32, clients=2)
    page.wait(lambda: "not the token of this service" in page.text("problem"))
    assert "wrong_token" in page.text("problem")
    page.wait(page.part("start").is_enabled)
    focused = page.front().switch_to.active_element
    assert focused.get_attribute("id") == "token"
    focused.clear()
    focused.send_keys(page.side.token + Keys.ENTER)
    page.wait_ended()
    assert page.text("problem") == ""


def test_a_second_workload_is_told_and_the_first_is_watched(page: Page) -> None:
    run = page.side.begin("held", clients=4)
    page.start(clients=2)
    page.wait(lambda: "Another workload is under way" in page.text("problem"))
    assert page.text("name") == run
    page.side.let_go(run)
    page.wait_ended()
    assert page.figures()["workload"].startswith("4 clients, each held once")


def test_what_the_service_refuses_is_told_in_its_words(page: Page) -> None:
    page.front().execute_script("document.getElementById('entry').noValidate = true")
    page.start(clients=501)
    page.wait(lambda: "does not take this workload" in page.text("problem"))
    assert "bad_request: num_clients: Input should be less than or equal to 500" in page.text(
        "problem"
    )


@pytest.mark.parametrize(
    ("identity", "value"),
    [("clients", "501"), ("clients", "1.5"), ("duration", "0"), ("model", "../x"), ("token", "")],
)
def test_the_page_itself_refuses_what_is_out_of_bounds(
    page: Page, identity: str, value: str
) -> None:
    page.start(**{identity: value})
    assert (
        page.front().execute_script(
            "return document.activeElement.id + document.activeElement.validity.valid"
        )
        == f"{identity}false"
    )
    assert not page.part("run").is_displayed()


def test_a_service_that_is_gone_is_told(browser: Any, tmp_path: Path) -> None:
    with bench(tmp_path) as side:
        page = Page(browser, side)
        page.start(clients=3, model="held", duration=60)
        page.wait(lambda: "3 under way of 3" in page.text("counts"))
    page.wait(lambda: "The service does not answer" in page.text("problem"))
    page.close()


def test_the_token_is_nowhere_but_in_its_field(page: Page) -> None:
    page.start(clients=2).wait_ended()
    kept = page.front().execute_script(
        "return JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])"
        " + document.documentElement.outerHTML"
    )
    assert page.side.token not in kept
    assert page.part("token").get_attribute("type") == "password"
    page.load()
    assert page.part("token").get_property("value") == ""


@pytest.mark.parametrize("width", [320, 1200])
def test_nothing_is_wider_than_the_window(page: Page, width: int) -> None:
    # The window itself cannot be so narrow: the view is.
    page.front().execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        page.start(clients=30, duration=20).wait_ended()
        assert page.front().execute_script("return innerWidth") == width
        assert page.front().execute_script(OVERFLOW) == 0
        edges = [left + wide for _, left, wide, _ in page.bars()]
        assert 0.5 * width < max(edges) < width
    finally:
        page.front().execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_keyboard_reaches_everything_in_order_and_shows_where_it_is(page: Page) -> None:
    page.start(clients=2).wait_ended()
    driver = page.front()
    page.part("token").click()
    reached = []
    for _ in range(6):
        active = driver.switch_to.active_element
        reached.append(active.get_attribute("id") or active.tag_name)
        assert re.match(r"solid", active.value_of_css_property("outline-style")), reached
        active.send_keys(Keys.TAB)
    assert reached == ["token", "model", "clients", "duration", "start", "summary"]
