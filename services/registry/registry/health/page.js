// Starts the workload, watches it, and shows its results. Whatever the service answers goes into the
// page as text (textContent), never as HTML. The token is in its field and in requests, nowhere else.
"use strict";
const SOON_MS = 300, LATEST_MS = 5000; // between two looks
const PATIENCE_MS = 10000; // with one look, before the page says that the service is held up
const GIVE_UP_MS = 30000; // past the time-out of the workload, with a service that does not answer
const WORDS = {
  missing_token: "The service wants its token: fill it in",
  wrong_token: "This is not the token of this service: copy it again from its file",
  workload_running: "Another workload is under way: this page now watches that one",
  bad_request: "The service does not take this workload",
  too_large: "The service does not take this workload",
  unknown_run: "The service does not know this run any more: it was restarted, or has done many others since. Start the workload again",
  stopping: "The service is about to stop: start the workload again once it is back",
  unreachable: "The service does not answer: it is gone, or so busy that it accepts nothing",
};
const OUTCOMES = {
  done: "done", timed_out: "timed out", cancelled: "cancelled", broken: "connection broken",
  over_budget: "stopped: too many bytes in all", refused: "refused",
};
const at = (id) => document.getElementById(id);
const show = (id, text) => { at(id).textContent = text; };
const tell = ({ code, reason }) => show("problem", `${WORDS[code] ?? "This failed"} (${code}: ${reason})`);
const make = (tag, text = "") => Object.assign(document.createElement(tag), { textContent: text });
const round = (value, digits = 1) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const megabytes = (bytes) => `${round(bytes / 1e6)} MB`;
let watched, drawn, told; // the run's name; the results that are shown; the tenth last told of

async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${at("token").value.trim()}`, "Content-Type": "application/json" };
  const slow = setTimeout(() => {
    told = -1; // the next answer says again how far it is
    show("state", "no answer for 10 s: the service's event loop may be held up; still waiting");
  }, PATIENCE_MS);
  try {
    const answer = await fetch(path, { ...options, headers }).catch((error) => {
      throw { code: "unreachable", reason: error.message };
    });
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) throw body.error ?? { code: answer.status, reason: answer.statusText };
    return body;
  } finally { clearTimeout(slow); }
}

async function start() {
  const wanted = {
    num_clients: at("clients").valueAsNumber, model_id: at("model").value.trim(),
    duration_seconds: at("duration").valueAsNumber,
  };
  show("problem", "");
  at("start").disabled = true;
  at("results").hidden = at("run").hidden = true;
  try {
    const { run_id } = await ask("/health/performance/workload", { method: "POST", body: JSON.stringify(wanted) });
    await watch(run_id, wanted.duration_seconds);
  } catch (error) {
    tell(error);
    if (error.code === "workload_running") await watch(error.run_id).catch(tell);
    if (String(error.code).endsWith("_token")) at("token").focus();
  } finally { at("start").disabled = false; }
}

// Looks again and again, less often the longer it takes and where there is no answer.
async function watch(run, duration_s = 3600) {
  watched = run;
  told = -1;
  show("name", run);
  show("state", "started");
  at("bar").value = 0;
  at("run").hidden = false;
  at("again").hidden = true;
  const end = performance.now() + duration_s * 1000 + GIVE_UP_MS;
  for (let pause = SOON_MS; ; pause = Math.min(pause * 1.3, LATEST_MS)) {
    try {
      const seen = await ask(`/health/performance/results/${encodeURIComponent(run)}`);
      if (at("problem").textContent.startsWith(WORDS.unreachable)) show("problem", "");
      follow(seen);
      if (seen.status !== "running") return finish(seen);
    } catch (error) {
      if (error.code !== "unreachable" || performance.now() > end) {
        at("again").hidden = error.code === "unknown_run";
        show("state", "not watched any more");
        throw error;
      }
      tell({ ...error, reason: `${error.reason}; the page goes on asking` });
    }
    await new Promise((wake) => setTimeout(wake, pause));
  }
}

function follow({ progress: { clients, done, failed, under_way, bytes }, elapsed_s }) {
  at("bar").value = (done + failed) / clients;
  show("counts", `${done} done, ${failed} failed, ${under_way} under way of ${clients}; ${megabytes(bytes)} after ${round(elapsed_s)} s`);
  // Who listens to the page hears every tenth, not every look.
  const tenth = Math.floor(10 * (done + failed) / clients);
  if (tenth !== told) show("state", `running: ${done} of ${clients} downloads are done, ${failed} failed`);
  told = tenth;
}

const ENDED = { completed: "ended", cancelled: "cancelled, because the service stopped", failed: "broke off" };

function finish({ status, results, workload, problem }) {
  drawn = results;
  at("results").hidden = false;
  table(results, workload);
  draw();
  show("state", `${ENDED[status] ?? status}: ${results.successful} of ${results.downloads} downloads succeeded in ${round(results.total_duration_s, 2)} s`);
  if (problem) show("problem", `The workload broke off: ${problem}`);
}

function milliseconds({ ms, at_least, reason }) {
  return ms === null ? `left out: ${reason}` : `${at_least ? "at least " : ""}${round(ms)} ms`;
}

function table(results, { num_clients, model_id, duration_seconds }) {
  const { latency } = results;
  const rows = [
    ["workload", `${num_clients} clients, each ${model_id} once, time-out ${duration_seconds} s`],
    ["succeeded", `${results.successful} of ${results.downloads} (${round(100 * results.success_rate)}%)`],
    ["timed out", results.timed_out], ["failed otherwise", results.failed_otherwise],
    ["total duration", `${round(results.total_duration_s, 3)} s`],
    ["throughput", `${round(results.throughput_bytes_per_s, 0)} bytes/s = ${round(results.throughput_MB_per_s, 2)} MB/s = ${round(results.throughput_MiB_per_s, 2)} MiB/s`],
    ["downloads per second", `${round(results.requests_per_s, 3)}`],
    ...["mean", "median", "p99", "min", "max"].map((name) => [`latency, ${name}`, milliseconds(latency[name])]),
  ];
  at("figures").replaceChildren(...rows.map(([name, value]) => {
    const row = make("tr"), head = make("th", name);
    head.scope = "row";
    row.append(head, make("td", value));
    return row;
  }));
  const ends = Object.entries(results.outcomes).filter(([name]) => name !== "done");
  const words = ends.map(([name, count]) => {
    const [, kind, status] = /^(.*?)(?:_(\d+))?$/.exec(name);
    return `${count} ${OUTCOMES[kind] ?? kind}${status ? ` with status ${status}` : ""}`;
  });
  show("note", [
    words.length ? `Without success: ${words.join(", ")}.` : "",
    latency.n_timed_out ? "A download that timed out would have taken longer: what depends on it is a lower bound (at least)." : "",
  ].join(" ").trim());
  at("rows").replaceChildren(...results.requests.map((each) => {
    const row = make("tr"), known = (value) => value === null ? "none" : round(value);
    const cells = [each.client, known(each.start_ms), known(each.first_byte_ms), known(each.end_ms), round(each.latency_ms),
      round(each.bytes, 0), each.status ?? "none", `${OUTCOMES[each.outcome] ?? each.outcome}${each.detail ? ` (${each.detail})` : ""}`];
    row.append(...cells.map((cell) => make("td", cell)));
    return row;
  }));
}

function part(name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function titled(element, text) {
  element.append(part("title", {}, text));
  return element;
}

// Round numbers from 0 on, about as many as are asked for, none above the highest value.
function ticks(highest, about) {
  const rough = Math.max(highest, 1e-9) / about, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  return Array.from({ length: Math.floor(highest / step + 1e-9) + 1 }, (_, index) => index * step);
}

// An empty drawing as wide as its place, with seconds along it; returns it and where a time stands.
function frame(id, height, requests, left) {
  const place = at(id), width = Math.max(place.getBoundingClientRect().width, 200);
  const last = Math.max(...requests.map(({ end_ms }) => end_ms), 1) / 1000;
  const marks = ticks(last, width < 500 ? 3 : 6);
  const digits = Math.max(0, -Math.floor(Math.log10(marks[1] ?? 1) + 1e-9));
  const x = (ms) => left + (width - left - 16) * ms / 1000 / last;
  place.setAttribute("viewBox", `0 0 ${width} ${height + 40}`);
  place.setAttribute("height", height + 40);
  const stripes = part("pattern", { id: "stripes", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  stripes.append(part("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "stripe" }));
  const all = [stripes];
  for (const mark of marks) {
    all.push(part("line", { x1: x(mark * 1000), x2: x(mark * 1000), y1: 0, y2: height, class: "grid" }));
    all.push(part("text", { x: x(mark * 1000), y: height + 16, "text-anchor": "middle" }, round(mark, digits)));
  }
  all.push(part("text", { x: (left + width - 16) / 2, y: height + 34, "text-anchor": "middle" }, "s since the start"));
  place.replaceChildren(...all);
  return { place, x, right: x(last * 1000) };
}

function draw() {
  if (!drawn || at("results").hidden) return;
  drawShare(drawn);
  drawWaterfall(drawn);
}

// Steps up by one download at the instant at which each was done: batches are stairs.
function drawShare({ requests, successful }) {
  const height = 180, left = 44, { place, x, right } = frame("share", height, requests, left);
  const y = (share) => height - (height - 8) * share;
  for (const share of [0, .5, 1]) {
    place.append(part("line", { x1: left, x2: right, y1: y(share), y2: y(share), class: share ? "grid" : "edge" }));
    place.append(part("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, `${100 * share}%`));
  }
  const ends = requests.filter(({ outcome }) => outcome === "done").map(({ end_ms }) => end_ms).sort((a, b) => a - b);
  const steps = ends.map((end, index) => `H${x(end)}V${y((index + 1) / requests.length)}`).join("");
  place.append(part("path", { d: `M${left} ${y(0)}${steps}H${right}`, class: "curve" }));
  const words = ends.length
    ? `The first of ${requests.length} downloads was done after ${round(ends[0] / 1000, 2)} s, half of the ${successful} that were done after ${round(ends[(ends.length - 1) >> 1] / 1000, 2)} s, the last after ${round(ends.at(-1) / 1000, 2)} s.`
    : `None of ${requests.length} downloads was done.`;
  place.setAttribute("aria-label", words);
  show("share-note", words);
}

function drawWaterfall({ requests }) {
  const rank = ({ outcome }) => outcome === "done" ? 0 : 1;
  const ordered = [...requests].sort((a, b) => rank(a) - rank(b) || a.end_ms - b.end_ms);
  const thick = Math.max(2, Math.min(10, Math.floor(600 / ordered.length))), gap = thick > 3 ? 1 : 0;
  const { place, x } = frame("waterfall", thick * ordered.length, requests, 8);
  ordered.forEach((each, index) => {
    const bar = (from, to, name) => part("rect", {
      x: x(from), y: index * thick, width: Math.max(x(to) - x(from), 1), height: thick - gap, class: name,
    });
    const words = `client ${each.client}: ${OUTCOMES[each.outcome] ?? each.outcome} after ${round(each.latency_ms)} ms, ${round(each.bytes, 0)} bytes`;
    if (each.outcome !== "done") { place.append(titled(bar(each.start_ms, each.end_ms, "lost"), words)); return; }
    place.append(titled(bar(each.start_ms, each.first_byte_ms, "wait"), words));
    place.append(titled(bar(each.first_byte_ms, each.end_ms, "receive"), words));
  });
  place.setAttribute("aria-label", `One bar for each of ${requests.length} downloads, from its start to its end, in the order of their ends. The table below has the numbers.`);
}

at("entry").onsubmit = (event) => { event.preventDefault(); start(); };
at("again").onclick = () => { show("problem", ""); watch(watched).catch(tell); };
new ResizeObserver(draw).observe(at("results"));
