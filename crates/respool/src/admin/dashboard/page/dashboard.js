// The page asks the API once a second and writes what has changed into cells that stay. Whatever clients, nodes or operators have
// chosen becomes text (`textContent`) and never markup.
"use strict";

const INTERVAL_MS = 1000;
const LIMIT_MS = 5000;
const $ = (id) => document.getElementById(id);

const SHARED = ["instance", "instance", "short"];
// The columns of each table behind the shared one: the field of the API, its title, and how it is shown. The key names a row of an
// instance from one answer to the next.
const ranked = (...figures) => ({
  key: "key",
  empty: "No key has been sampled yet.",
  columns: [["key", "key", "code"], ...figures, ["command", "command", "short"]],
});
const TABLES = {
  nodes: {
    key: "node",
    empty: "No nodes: the engine in this process answers.",
    columns: [
      ["node", "node", "short"], ["state", "state", "state"], ["", "", "orders"],
      ["last_failure", "last failure", "wide"], ["pool", "pool", "short"], ["role", "role", "short"], ["round_trip_us", "round trip", "time"], ["connections", "shared", "number"],
      ["private_connections", "private", "number"], ["outstanding", "outstanding", "number"], ["queued_bytes", "queued", "bytes"],
      ["failures", "failures", "number"], ["server", "server", "wide"], ["unfit", "unfit", "text"],
    ],
  },
  pools: {
    key: "pool",
    empty: "No pools.",
    columns: [
      ["pool", "pool", "short"], ["placement", "placement", "short"], ["nodes", "nodes", "number"],
      ["nodes_down", "down", "number"], ["replicas", "replicas", "number"], ["dead_node", "dead node", "short"],
      ["connections", "connections", "number"], ["outstanding", "outstanding", "number"], ["queued_bytes", "queued", "bytes"],
      ["subscriptions", "subscriptions", "number"],
    ],
  },
  latency: {
    key: "of",
    empty: "Nothing measured yet.",
    columns: [
      ["of", "of", "short"], ["samples", "samples", "number"], ["mean_us", "mean", "time"],
      ["p50_us", "p50", "time"], ["p99_us", "p99", "time"], ["p999_us", "p99.9", "time"], ["max_us", "maximum", "time"],
    ],
  },
  slowlog: {
    key: null,
    empty: "No slow requests.",
    columns: [
      ["unix_us", "at", "clock"], ["total_us", "total", "time"], ["queue_us", "queued", "time"],
      ["upstream_us", "at the node", "time"], ["node", "node", "short"], ["command", "command", "code"], ["client", "client", "short"],
      ["client_name", "name", "text"], ["user", "user", "text"],
    ],
  },
  clients: {
    key: "id",
    empty: "No clients.",
    columns: [
      ["id", "id", "number"], ["addr", "address", "short"], ["name", "name", "text"],
      ["user", "user", "text"], ["db", "db", "number"], ["cmd", "last command", "short"], ["age_s", "age", "seconds"],
      ["idle_s", "idle", "seconds"], ["outstanding", "outstanding", "number"], ["output_bytes", "owed", "bytes"],
      ["held_bytes", "held", "bytes"], ["state", "state", "text"], ["paused_for", "not read for", "text"],
    ],
  },
  hotkeys: ranked(["seen", "seen", "number"], ["of_samples", "of samples", "number"]),
  bigkeys: ranked(["bytes", "size", "bytes"]),
  pins: {
    key: null,
    empty: "All connections are shared.",
    columns: [
      ["client", "client", "number"], ["node", "node", "short"], ["reason", "reason", "short"],
      ["mode", "mode", "short"], ["age_ms", "for", "millis"],
    ],
  },
};

const FIGURES = ["time", "number", "bytes", "seconds", "millis"];
// Columns that are left out while no row has anything in them.
const OPTIONAL = ["state", "unfit", "last_failure", "client_name", "name", "paused_for", "server"];
const SUMMARY = [
  ["Requests a second", (now) => whole(rate(now, "requests"))],
  ["Clients", (now) => whole(now.counters.clients)],
  ["Nodes up", (now) => nodesUp(now.tables.nodes.rows)],
  ["Slow a second", (now) => whole(rate(now, "slow_requests"))],
  ["Timeouts", (now) => whole(now.counters.timeouts)],
  ["Connections lost", (now) => whole(now.counters.upstream_losses)],
  ["Memory held", (now) => bytes(now.held_bytes)],
  ["Running for", (now) => seconds(Math.floor(now.uptime_us / 1e6))],
];

let token = "";
let isHeld = false;
let before = null;
let rates = null;
let isAsking = false;

const whole = (figure) => (figure === null || figure === undefined ? "-" : Math.round(figure).toLocaleString("en"));

function bytes(figure) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (figure >= 1024 && unit + 1 < units.length) {
    figure /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? figure : figure.toFixed(1)} ${units[unit]}`;
}

// Zero is what has not been measured.
function time(us) {
  if (us === 0) return "-";
  if (us < 1000) return `${us} µs`;
  return us < 1e6 ? `${(us / 1000).toFixed(us < 1e5 ? 2 : 0)} ms` : `${(us / 1e6).toFixed(2)} s`;
}

function seconds(s) {
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

function shown(value, kind) {
  if (value === undefined || value === null) return "";
  if (typeof value !== "number") return String(value);
  switch (kind) {
    case "time": return time(value);
    case "bytes": return bytes(value);
    case "seconds": return seconds(value);
    case "millis": return value < 10000 ? `${value} ms` : seconds(Math.floor(value / 1000));
    case "clock": return new Date(value / 1000).toLocaleTimeString("en-GB");
    default: return value.toLocaleString("en");
  }
}

const rate = (now, name) => (rates === null ? null : rates[name] ?? null);

// Counters of a process that has been started again are less than before: there is no rate then.
function takeRates(now) {
  rates = null;
  if (before !== null && before.pid === now.pid && now.uptime_us > before.uptime_us) {
    const seconds = (now.uptime_us - before.uptime_us) / 1e6;
    rates = {};
    for (const [name, value] of Object.entries(now.counters)) {
      const grown = value - (before.counters[name] ?? 0);
      rates[name] = grown < 0 ? null : grown / seconds;
    }
  }
  before = now;
}

function nodesUp(nodes) {
  if (nodes.length === 0) return "-";
  const out = nodes.filter((node) => ["down", "suspect", "paused", "drained"].includes(node.state)).length;
  return `${nodes.length - out} of ${nodes.length}`;
}

// Writes only what differs, so that nothing flickers, selections stay and screen readers are not told again.
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function make(name, className, text) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function showSummary(now) {
  const list = $("summary");
  SUMMARY.forEach(([title, value], place) => {
    let item = list.children[place];
    if (!item) {
      item = make("div");
      item.append(make("dt", "", title), make("dd"));
      list.append(item);
    }
    write(item.lastChild, value(now));
  });
}

function columnsOf(name, rows, now) {
  return [SHARED, ...TABLES[name].columns].filter(([field, , kind]) => {
    if (kind === "orders") return now.takes_orders && token !== "";
    if (field === "instance") return now.instances.length > 1;
    return !OPTIONAL.includes(field) || rows.some((row) => row[field] !== "" && row[field] !== undefined);
  });
}

// Long texts are cut, so that two rows may have the same one: each has a line of its own all the same.
function keyOf(row, key, place, taken) {
  if (key === null) return String(place);
  const name = JSON.stringify([row.instance, row[key]]);
  let rowKey = name;
  for (let turn = 2; taken.has(rowKey); turn += 1) rowKey = `${name} ${turn}`;
  return rowKey;
}

function showTable(table, name, { rows, left_out: leftOut }, now) {
  const { key, empty } = TABLES[name];
  const columns = columnsOf(name, rows, now);
  const layout = columns.map(([field]) => field).join();
  if (table.dataset.layout !== layout) {
    table.dataset.layout = layout;
    const head = make("tr");
    for (const [, title, kind] of columns) {
      const cell = make("th", FIGURES.includes(kind) ? "number" : "", title || "orders");
      cell.scope = "col";
      head.append(cell);
    }
    const top = make("thead");
    top.append(head);
    table.replaceChildren(top, make("tbody"));
    table.rowsByKey = new Map();
  }
  const body = table.tBodies[0];
  const kept = new Map();
  rows.forEach((row, place) => {
    const rowKey = keyOf(row, key, place, kept);
    const line = table.rowsByKey.get(rowKey) ?? newLine(columns);
    kept.set(rowKey, line);
    fill(line, columns, row);
    if (body.children[place] !== line) body.insertBefore(line, body.children[place] ?? null);
  });
  while (body.children.length > rows.length) body.lastChild.remove();
  table.rowsByKey = kept;
  const note = rows.length === 0 ? empty : leftOut > 0 ? `${whole(leftOut)} more are not shown.` : "";
  if (note) {
    const cell = make("td", "none", note);
    cell.colSpan = columns.length;
    const line = make("tr");
    line.append(cell);
    body.append(line);
  }
}

function newLine(columns) {
  const line = make("tr");
  for (const [, , kind] of columns) {
    const cell = make("td");
    if (FIGURES.includes(kind)) cell.className = "number";
    if (["short", "text", "wide", "code", "orders"].includes(kind)) cell.className = kind;
    if (kind === "clock") cell.className = "short";
    line.append(cell);
  }
  return line;
}

function fill(line, columns, row) {
  columns.forEach(([field, , kind], place) => {
    const cell = line.children[place];
    if (kind === "orders") return fillOrders(cell, row);
    write(cell, shown(row[field], kind));
    if (kind === "state") {
      const known = ["up", "idle", "down", "suspect", "paused", "drained"].includes(row.state) ? row.state : "";
      const name = `short mark ${known}`;
      if (cell.className !== name) cell.className = name;
    }
  });
}

function fillOrders(cell, row) {
  const isHeldBack = ["paused", "drained"].includes(row.state);
  const orders = isHeldBack ? ["resume"] : ["pause", "drain"];
  if (cell.dataset.orders === orders.join()) return;
  cell.dataset.orders = orders.join();
  cell.replaceChildren(...orders.map((order) => {
    const button = make("button", "", order);
    button.type = "button";
    button.setAttribute("aria-label", `${order} node ${row.node}`);
    button.addEventListener("click", () => confirmOrder(order, row));
    return button;
  }));
}

async function call(path, body, secret = token) {
  const headers = {};
  if (secret !== "") headers.Authorization = `Bearer ${secret}`;
  if (body) headers["Content-Type"] = "application/json";
  const signal = AbortSignal.timeout(LIMIT_MS);
  const method = body ? "POST" : "GET";
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
  const answer = await response.json();
  if (!response.ok) {
    const error = new Error(answer.error.message);
    error.code = answer.error.code;
    throw error;
  }
  return answer;
}

function say(text, isBad) {
  write($("state"), text);
  $("state").classList.toggle("bad", isBad);
}

// What has been seen stays; the page says that it is old.
function fail(error) {
  if (error.code === "wrong_token") setToken("");
  const words = error.code ? error.message : "Respool does not answer";
  say(before === null ? words : `${words} - shown is what was seen last`, true);
}

async function look() {
  if (isHeld || isAsking || document.hidden) return;
  isAsking = true;
  try {
    show(await call(`/api/v1/status?tables=${Object.keys(TABLES).join()}&rows=100`));
  } catch (error) {
    fail(error);
  }
  isAsking = false;
}

function show(now) {
  takeRates(now);
  write($("version"), now.version);
  const workers = now.workers === 1 ? "1 worker" : `${now.workers} workers`;
  write($("process"), `process ${now.pid}, ${workers}, ${now.phase}`);
  showSummary(now);
  for (const table of document.querySelectorAll("table[data-table]")) {
    showTable(table, table.dataset.table, now.tables[table.dataset.table], now);
  }
  const missing = now.workers_missing;
  write($("trouble"), missing > 0 ? `${missing} of ${workers} did not answer in time: the tables are without what they know` : "");
  $("orders").hidden = !(now.takes_orders && token !== "");
  $("unlock").hidden = !now.takes_orders && token === "";
  say(now.takes_orders ? (token === "" ? "Read-only until the token is entered" : "Orders are possible") : "Read-only", false);
}

function setToken(text) {
  token = text;
  write($("unlock"), token === "" ? "Enter token" : "Forget token");
}

$("hold").addEventListener("click", () => {
  isHeld = !isHeld;
  $("hold").setAttribute("aria-pressed", String(isHeld));
  if (isHeld) say("Not updating", false);
  look();
});

$("unlock").addEventListener("click", () => {
  if (token !== "") {
    setToken("");
    look();
    return;
  }
  $("token").value = "";
  write($("token-error"), "");
  $("token-dialog").showModal();
});

// A token is asked for by the page until Respool has taken it, so that orders are never offered for a wrong one.
async function useToken() {
  const secret = $("token").value.trim();
  if (secret === "") return;
  try {
    await call("/api/v1/status", undefined, secret);
  } catch (error) {
    write($("token-error"), error.code ? error.message : "Respool does not answer, or this cannot be a token");
    return;
  }
  setToken(secret);
  $("token").value = "";
  $("token-dialog").close();
  look();
}

$("token-cancel").addEventListener("click", () => $("token-dialog").close());
$("token-use").addEventListener("click", useToken);
$("token").addEventListener("keydown", (event) => {
  if (event.key === "Enter") useToken();
});

const MEANS = {
  pause: "Requests are held back with their clients until this is taken back. Nothing is refused before pause_timeout.",
  resume: "Requests that were held back go on.",
  drain: "Nothing more is sent there. What it owes is still answered, then its connections end.",
};
let ordered = null;

// `row`: the node; without one the order is for all.
function confirmOrder(order, row) {
  const instances = before === null ? [] : before.instances;
  ordered = row
    ? [[order, { nodes: [row.node], instance: row.instance }]]
    : instances.map((instance) => [order, { all: true, instance }]);
  const name = order[0].toUpperCase() + order.slice(1);
  write($("order-title"), row ? `${name} node ${row.node}?` : `${name} all nodes?`);
  write($("order-text"), MEANS[order]);
  write($("order-give"), name);
  $("order-dialog").showModal();
}

$("order-cancel").addEventListener("click", () => $("order-dialog").close());
$("order-give").addEventListener("click", async () => {
  $("order-dialog").close();
  try {
    for (const [order, body] of ordered) await call(`/api/v1/${order}`, body);
    await look();
  } catch (error) {
    fail(error);
  }
});
for (const button of $("orders").children) {
  button.addEventListener("click", () => confirmOrder(button.dataset.order, null));
}

document.addEventListener("visibilitychange", look);
setInterval(look, INTERVAL_MS);
look();
