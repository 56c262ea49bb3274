"""How often a duel with default options is right, wrong or not decided, on services of users.

Flask under gunicorn, datasette, a Node server, a Go server, nginx before the Go server, and a Java
server, which must warm up, meet copies of themselves: equal ones, copies that compute 5% and 10%
longer, and copies that wait 10% longer (``perflab duel --variant old=... --variant new=...``). Each
service is timed first by one user, with its work and with twice as much, so that the slower copy
works longer by the planned share of the whole answer; or it sleeps 11 ms instead of 10.

Of equal copies "no difference larger than 5%" is right (the 90% interval lies within it), and a
difference is wrong. Of others a slower mean response time is right; faster, or "no difference
larger than 3%", is wrong. A duel takes up to two minutes. What is not installed is left out:
gunicorn and datasette are installed into a folder of their own; node, go, nginx and java must be
there.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import bench
from perflab import api
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.results import DIFFERENT, Compared
from perflab.statistics.two_samples import Rate

EQUAL = "equal"
# The share by which the new copy is slower, and whether it waits.
KINDS = {EQUAL: (0.0, False), "computes 5%": (0.05, False), "computes 10%": (0.10, False),
         "waits 10%": (0.10, True)}  # fmt: skip
WAITS_MS = 10
WITHIN = 0.05
NOT_DECIDED = "not decided"
BESIDE = "import time\nwhile True:\n" + (
    "    end = time.thread_time() + 0.02\n    while time.thread_time() < end: pass\n"
    "    time.sleep(0.08)"
)
FLASK = """
import os, time
from flask import Flask
app = Flask(__name__)
burn, wait = float(os.environ["BURN_MS"]) / 1e3, float(os.environ["WAIT_MS"]) / 1e3

@app.get("/")
def index():
    end = time.thread_time() + burn
    while time.thread_time() < end:
        pass
    time.sleep(wait)
    return {"hello": "world"}
"""
DATASETTE = """
import asyncio, os, time
from datasette import Response, hookimpl
burn, wait = float(os.environ["BURN_MS"]) / 1e3, float(os.environ["WAIT_MS"]) / 1e3

async def index(datasette):
    rows = await datasette.get_database("_memory").execute("select 1")
    end = time.thread_time() + burn
    while time.thread_time() < end:
        pass
    await asyncio.sleep(wait)
    return Response.json([list(row) for row in rows.rows])

@hookimpl
def register_routes():
    return [(r"^/work$", index)]
"""
# Rounds and no clock: the CPU time that these two can read moves in steps of some ms.
NODE = """
const [rounds, wait] = [Number(process.env.BURN_MS) * 1e5, Number(process.env.WAIT_MS)];
require("http").createServer((request, answer) => {
  let x = 1;
  for (let i = 0; i < rounds; i++) x = Math.imul(x, 1664525) + 1013904223;
  setTimeout(() => answer.end("hello" + (x === 0.5)), wait);
}).listen(Number(process.env.PORT), "127.0.0.1");
"""
GO = """package main
import ("net"; "net/http"; "os"; "strconv"; "time")
func number(name string) float64 { x, _ := strconv.ParseFloat(os.Getenv(name), 64); return x }
var last uint64
func main() {
  rounds, wait := int(number("BURN_MS") * 1e6), time.Duration(number("WAIT_MS") * 1e6)
  http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
    x := uint64(1)
    for i := 0; i < rounds; i++ { x = x * 6364136223846793005 + 1442695040888963407 }
    last = x
    time.Sleep(wait)
    answer.Write([]byte("hello"))
  })
  network, address := "tcp", "127.0.0.1:" + os.Getenv("PORT")
  if socket := os.Getenv("SOCKET"); socket != "" { network, address = "unix", socket }
  listener, _ := net.Listen(network, address)
  http.Serve(listener, nil)
}
"""
JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
public class Server {
  public static void main(String[] words) throws Exception {
    long rounds = (long) (Double.parseDouble(System.getenv("BURN_MS")) * 1e6);
    long wait = (long) Double.parseDouble(System.getenv("WAIT_MS"));
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.createContext("/", exchange -> {
      long x = 1;
      for (long i = 0; i < rounds; i++) x = x * 6364136223846793005L + 1442695040888963407L;
      try { Thread.sleep(wait); } catch (InterruptedException ended) { return; }
      byte[] answer = ("hello" + (x == 5 ? "!" : "")).getBytes();
      exchange.sendResponseHeaders(200, answer.length);
      exchange.getResponseBody().write(answer);
      exchange.close();
    });
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.start();
  }
}
"""
# What the shell fills in is where the copy lies and its port.
PROXY = """
folder=$(mktemp -d -p {place}) && cat > "$folder/nginx.conf" <<END
{configured}
END
SOCKET="$folder/socket" {place}/server &
exec nginx -g "user root;" -c "$folder/nginx.conf"
"""


def services(place: Path) -> dict[str, tuple[str, str]]:
    """Write the services that can run here; return command and path of each."""
    programs = bench.programs(place, "flask", "gunicorn", "datasette")
    (place / "plugins").mkdir()
    for name, text in (("app.py", FLASK), ("plugins/work.py", DATASETTE), ("server.js", NODE)):
        (place / name).write_text(text)
    made = {
        "Flask, gunicorn": (f"{programs}/gunicorn --bind 127.0.0.1:{{port}} app:app", "/"),
        "datasette": (
            f"{programs}/datasette --memory --host 127.0.0.1 --port {{port}} "
            f"--plugins-dir {place}/plugins",
            "/work",
        ),
    }
    if shutil.which("node"):
        made["Node"] = (f"node {place}/server.js", "/")
    if go := shutil.which("go"):
        (place / "server.go").write_text(GO)
        subprocess.run([go, "build", "-o", "server", "server.go"], check=True, cwd=place)
        made["Go"] = (f"{place}/server", "/")
    if shutil.which("java") and (javac := shutil.which("javac")):
        (place / "Server.java").write_text(JAVA)
        subprocess.run([javac, "-d", place, place / "Server.java"], check=True)
        made["Java"] = (f"java -Dsun.net.httpserver.nodelay=true -cp {place} Server", "/")
    if go and shutil.which("nginx"):
        answer = "proxy_pass http://unix:$folder/socket"
        configured = bench.NGINX.format(folder="$folder", port="$PORT", answer=answer)
        (place / "nginx.sh").write_text(PROXY.format(configured=configured, place=place))
        made["nginx"] = (f"sh {place}/nginx.sh", "/")
    return made


def variant(command: str, burn_ms: float, wait_ms: float) -> str:
    """Return a variant that burns and waits so long for each answer."""
    return f"command:env BURN_MS={burn_ms:.4f} WAIT_MS={wait_ms:g} {command}"


def base_ms(place: Path, command: str, path: str, burn_ms: float) -> float:
    """Return the mean response time of a service with one user, without a wait."""
    port = bench.free_port()
    words = ["env", f"PORT={port}", f"BURN_MS={burn_ms}", "WAIT_MS=0"]
    begun = subprocess.Popen([*words, *command.format(port=port).split()], cwd=place,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             process_group=0)  # fmt: skip
    url = f"http://127.0.0.1:{port}{path}"
    try:
        until = time.monotonic() + bench.PATIENCE_S
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(url, timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        summary = api.send_load(url, users=1, duration=3, warmup=1)
        return float(summary.response_time.ms["mean"] or math.nan)
    finally:
        os.killpg(begun.pid, signal.SIGTERM)
        begun.wait()


def extra_of(place: Path, command: str, path: str, burn_ms: float) -> float:
    """Return how much more ``BURN_MS`` makes an answer take twice as long."""
    once, twice = (base_ms(place, command, path, burn) for burn in (burn_ms, 2 * burn_ms))
    return once * burn_ms / (twice - once)


def judged(finding: Finding, kind: str) -> str:
    """Return whether a duel was right, wrong or not decided about the mean response time."""
    effect, decision = finding.effect, finding.decision
    if effect is None or decision is None or effect.bound:
        return NOT_DECIDED
    if kind == EQUAL:
        is_within = effect.narrow_low > 1 / (1 + WITHIN) and effect.narrow_high < 1 + WITHIN
        if decision.result in DIFFERENT and not is_within:
            return "wrong"
        return "right" if is_within else NOT_DECIDED
    if decision.result is Compared.NOT_DECIDED:
        return NOT_DECIDED
    return "right" if decision.result is Compared.MORE else "wrong"


def duel(place: Path, command: str, path: str, kind: str, burn_ms: float, extra_ms: float,
         design: str) -> dict[str, Any]:  # fmt: skip
    """Carry out one duel, with default options but for its design; return what came of it."""
    waits = KINDS[kind][1]
    old = variant(command, burn_ms, WAITS_MS if waits else 0)
    new = variant(command, burn_ms + (0 if waits else extra_ms),
                  round(WAITS_MS * (1 + KINDS[kind][0])) if waits else 0)  # fmt: skip
    began = time.monotonic()
    run = api.run("custom_service", {"variants": [f"old={old}", f"new={new}"], "path": path,
                                     "folder": str(place), "wait_s": 600,
                                     "design": design})  # fmt: skip
    (finding,) = (item for item in evaluate(run) if item.contrast.response == "mean_ms")
    effect = finding.effect
    return {
        "was": judged(finding, kind), "minutes": (time.monotonic() - began) / 60,
        "ratio": effect.estimate if effect else math.nan,
        "low": effect.low if effect else math.nan, "high": effect.high if effect else math.nan,
        "blocks": effect.n if effect else 0, "run": run.run_id,
        "commit": str(run.record.code.get("commit"))[:8],
    }  # fmt: skip


@contextmanager
def neighbour(is_there: bool) -> Iterator[None]:
    """Let a process compute for a fifth of the time, if asked to."""
    process = subprocess.Popen([sys.executable, "-c", BESIDE if is_there else "pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def summary(rows: pd.DataFrame) -> list[Mapping[str, object]]:
    """Return a row for each kind, over all services."""
    return [
        {
            "copies": kind,
            **{
                was: Rate(int((of_kind["was"] == was).sum()), len(of_kind)).text()
                for was in ("right", "wrong", NOT_DECIDED)
            },
            "ratio": f"{of_kind['ratio'].median():.3f}",
            "minutes": f"{of_kind['minutes'].mean():.1f}",
        }
        for kind, of_kind in rows.groupby("kind", sort=False)
    ]


def main() -> None:
    """Carry out every duel, in random order, and print every one and the table."""
    given = bench.options(
        __doc__,
        times=(5, "duels of each service and kind, with those in the file"),
        only=("", "services, by the first letters of their names: F,d,N,G,n,J"),
        design=("auto", "how copies share a block's time: auto, trials or slices"),
        burn=(2.0, "work of every answer, about so many ms of CPU time"),
        out=("", "a CSV file to which every duel is added; what it holds is not carried out again"),
    )
    kept = bench.Sittings(given.out)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        chosen = {
            name: words
            for name, words in services(place).items()
            if not given.only or name.startswith(tuple(given.only.split(",")))
        }
        cells = list(product(chosen, KINDS)) if given.times else []
        extras = {name: extra_of(place, *chosen[name], given.burn) for name in dict(cells)}
        for (name, kind), number in kept.left(cells, ["service", "kind"], given.times):
            extra_ms = KINDS[kind][0] * extras[name]
            beside = number % 5 in (1, 3)
            with neighbour(beside):
                result = duel(place, *chosen[name], kind, given.burn, extra_ms, given.design)
            kept.add(service=name, kind=kind, beside=beside, **result)
    bench.show(summary(pd.DataFrame(kept.rows)))


if __name__ == "__main__":
    main()
