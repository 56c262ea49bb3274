// A user of the chat: log in, choose a channel, read and write. Whatever others wrote goes into the
// page as text (textContent), never as HTML.
"use strict";
const KEPT = 500; // messages that the page remembers, and shows
const FRAMES = { json: "text", orjson: "binary", msgspec: "binary" }; // codecs that are JSON
const WORDS = {
  bad_request: "The service did not understand the request",
  bad_frame: "The service could not read what this page sent",
  too_large: "The message is too long: shorten it",
  unknown_channel: "There is no such channel: choose another",
  not_subscribed: "Tick the channel to subscribe, then send again",
  not_stored: "The service could not store this: others may have seen it, the history will not have it",
  wrong_login: "The login is wrong: check name and password",
  too_many_logins: "Many logins fail at the moment: try again in some seconds",
  missing_token: "You are not logged in: log in",
  wrong_token: "The service does not know this login any more: log in again",
  expired_token: "This login is too old: log in again",
  unreachable: "The service does not answer: is it running?",
};
const ENDS = {
  1000: "it was closed", 1001: "the service went away", 1006: "it broke off without a word",
  1009: "a message was far too long", 1011: "the service failed", 1012: "the service stops or restarts",
  4401: "the service did not let you in", 4408: "this page read too slowly",
};
const at = (id) => document.getElementById(id);
const show = (id, text) => { at(id).textContent = text; };
const tell = ({ code, reason }) => show("problem", `${WORDS[code] ?? "This failed"} (${code}: ${reason})`);
const make = (tag, text, more) => Object.assign(document.createElement(tag), { textContent: text }, more);
const channels = new Map(); // name -> its button and box, and how many messages were not yet seen
const heard = new Map(); // sequence -> message
const asked = new Map(); // stamp -> what waits for its answer
let user, token, socket, chosen, timer, stamp = 0;

async function get(path, options) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(path, { ...options, headers }).catch((error) => {
    throw { code: "unreachable", reason: error.message };
  });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw body.error ?? { code: answer.status, reason: answer.statusText };
  return body;
}

async function greet() {
  const { codec } = await get("/settings");
  const frames = FRAMES[codec];
  show("codec", `codec ${codec}${frames ? ` (JSON in ${frames} frames)` : ""}`);
  at("enter").disabled = !frames;
  if (!frames) show("problem", `This page speaks JSON, and the service runs the codec ${codec}: ` +
    "start it with codec json, orjson or msgspec to chat from a browser.");
}

async function enter() {
  const login = { user: at("user").value, password: at("password").value };
  at("enter").disabled = true;
  try {
    ({ token } = await get("/login", { method: "POST", body: JSON.stringify(login) }));
    user = login.user;
    at("password").value = "";
    connect();
  } finally { at("enter").disabled = false; }
}

function connect() {
  show("state", "connecting …");
  at("reconnect").hidden = true;
  socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws?token=${encodeURIComponent(token)}`);
  socket.binaryType = "arraybuffer";
  socket.onopen = opened;
  socket.onmessage = ({ data }) => hear(typeof data === "string" ? data : new TextDecoder().decode(data));
  socket.onclose = ended;
}

function opened() {
  show("state", `connected as ${user}, ${socket.extensions ? "compressed" : "not compressed"}`);
  show("problem", "");
  at("entry").hidden = true;
  at("room").hidden = at("leave").hidden = at("send").disabled = false;
  timer = setInterval(ping, 1000);
  ping();
  listChannels().catch(tell);
}

function stopAsking() {
  clearInterval(timer);
  asked.clear();
  for (const id of ["pong", "acked"]) show(id, "");
}

function ended({ code, reason }) {
  stopAsking();
  const why = ENDS[code] ?? "see the code";
  show("state", `connection ended: ${why} (code ${code}, ${reason || "no reason given"})`);
  at("reconnect").hidden = false;
  at("send").disabled = true;
  for (const { box } of channels.values()) box.disabled = true;
  if (code === 4401) { leave(); tell({ code: reason, reason: "the service closed the connection" }); }
}

function leave() {
  socket.onclose = null;
  socket.close();
  stopAsking();
  for (const known of [channels, heard]) known.clear();
  show("state", "not connected");
  token = chosen = undefined;
  at("log").replaceChildren();
  at("entry").hidden = false;
  at("room").hidden = at("leave").hidden = at("reconnect").hidden = true;
  at("user").focus();
}

function put(envelope) {
  asked.set(++stamp, { ...envelope, since: performance.now() });
  socket.send(JSON.stringify({ ...envelope, stamp }));
}

function ping() {
  const late = [...asked.values()].find(({ kind }) => kind === "ping");
  if (late) show("pong", `no pong for ${Math.round((performance.now() - late.since) / 1000)} s`);
  put({ kind: "ping" });
}

async function listChannels() {
  const { channels: names, subscribed } = await get("/channels");
  at("channels").replaceChildren(...names.map((name) => {
    const box = make("input", "", { type: "checkbox", ariaLabel: `subscribe to ${name}` });
    box.checked = subscribed.includes(name);
    const button = make("button", name, { onclick: () => choose(name).catch(tell) });
    box.onchange = () => {
      box.disabled = true;
      put({ kind: box.checked ? "subscribe" : "unsubscribe", channel: name });
    };
    channels.set(name, { box, button, unseen: 0 });
    const item = make("li");
    item.append(box, button);
    return item;
  }));
  await choose(chosen ?? subscribed[0] ?? names[0]);
}

async function choose(name) {
  channels.get(chosen)?.button.removeAttribute("aria-current");
  channels.get(name).button.ariaCurrent = "true";
  channels.get(name).unseen = 0;
  show("chosen", chosen = name);
  channels.get(name).button.textContent = name;
  at("log").replaceChildren();
  at("text").focus();
  const { messages } = await get(`/history?channel=${encodeURIComponent(name)}`);
  if (chosen !== name) return;
  // The history may lack what was not yet committed, and does not tell the time.
  const all = new Map(messages.map((each) => [each.sequence, each]));
  for (const [sequence, each] of heard) if (each.channel === name) all.set(sequence, each);
  at("log").replaceChildren(...[...all].sort(([a], [b]) => a - b).map(([, each]) => line(each)));
  at("log").scrollTop = at("log").scrollHeight;
}

function line({ sender, text, time }) {
  const paragraph = make("p", "", { className: sender === user ? "own" : "" });
  paragraph.append(make("time", time ?? "earlier"), make("b", sender), make("span", text));
  return paragraph;
}

const ANSWERS = {
  message(message) {
    const channel = channels.get(message.channel), log = at("log");
    heard.set(message.sequence, { ...message, time: new Date().toLocaleTimeString() });
    if (heard.size > KEPT) heard.delete(heard.keys().next().value);
    if (message.channel !== chosen) {
      if (channel) channel.button.textContent = `${message.channel} (${++channel.unseen} new)`;
      return;
    }
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 50;
    log.append(line(heard.get(message.sequence)));
    if (log.childElementCount > KEPT) log.firstElementChild.remove();
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  },
  ack(_, { kind, channel, took }) {
    show("problem", "");
    if (kind === "send") show("acked", `last message acknowledged after ${took} ms`);
    else channels.get(channel).box.disabled = false;
  },
  pong({ users, messages, covered_ns, queue }, { took }) {
    const rate = Math.round(messages / covered_ns * 1e9);
    show("pong", `round trip ${took} ms, users ${users}, messages/s ${rate}, frames waiting ${queue}`);
  },
  error(refused, { kind, channel, text }) {
    tell(refused);
    if (kind === "send" && refused.code !== "not_stored") at("text").value ||= text;
    const box = channels.get(channel)?.box;
    if (kind?.endsWith("subscribe") && box) { box.disabled = false; box.checked = !box.checked; }
  },
};

function hear(text) {
  const envelope = JSON.parse(text), question = asked.get(envelope.stamp);
  asked.delete(envelope.stamp);
  const took = (performance.now() - question?.since).toFixed(1);
  ANSWERS[envelope.kind](envelope, { ...question, took });
}

function say() {
  if (socket.readyState !== WebSocket.OPEN) return;
  put({ kind: "send", channel: chosen, text: at("text").value });
  at("text").value = "";
}

at("entry").onsubmit = (event) => { event.preventDefault(); enter().catch(tell); };
at("say").onsubmit = (event) => { event.preventDefault(); say(); };
at("reconnect").onclick = connect;
at("leave").onclick = leave;
greet().catch(tell);
