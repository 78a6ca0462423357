// Draws the step that the element #data holds. Data attributes of elements are for tests.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const LANES = ["computes", "waits", "messages"];
const LANE = 12, GAP = 8, LABEL = 150, AXIS = 22; // pixels

const element = (id) => document.getElementById(id);
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function scaled(value, base, units) {
  let unit = 0;
  for (; value >= base && unit + 1 < units.length; ++unit) value /= base;
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toFixed(digits) + units[unit];
}
const bytes = (value) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
const seconds = (value) => scaled(value * 1e9, 1000, [" ns", " µs", " ms", " s"]);
const total = (list) => list.reduce((sum, value) => sum + value, 0);
const mean = (list) => (list.length ? total(list) / list.length : 0);

// A group's colour, in all its waves. Neighbours are far apart in hue. Colours repeat after 2,760 groups.
const numbers = new Map(data.groups.map((group, index) => [group.name, index]));
function colourOfGroup(group) {
  const index = numbers.get(group);
  return index === undefined ? style("--dim") : `hsl(${190 + ((index * 47) % 120)} 60% ${42 + ((index * 7) % 23)}%)`;
}
const colours = data.names.map((name) => colourOfGroup(name.split("\n")[1].split(", ")[0].replace(/\.w\d+$/, "")));

// "1 rank", "2 ranks"
function plural(count, one, many = one + "s") {
  return `${count} ${count === 1 ? one : many}`;
}

function add(parent, tag, text, className) {
  const child = document.createElement(tag);
  child.textContent = text;
  if (className) child.className = className;
  parent.append(child);
  return child;
}

// Clears a canvas, and gives it that height in pixels of the page. Returns its context and width.
function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 1200;
  canvas.style.height = height + "px";
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  return [context, width];
}

function showTip(event, text) {
  const tip = element("tip");
  tip.style.display = text ? "block" : "none";
  if (!text) return;
  tip.textContent = text;
  tip.style.left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = event.clientY + 14 + "px";
}

// ------------------------------------------------------------------ figures

function writeFigures() {
  const ranks = data.ranks;
  element("title").textContent = `${data.name}: a step of ${seconds(data.latency_seconds)}`;
  element("subtitle").textContent =
    `${plural(ranks.length, "rank")}, ${plural(data.groups.length, "group")}. ` +
    (data.progress === "streams" ? "Messages travel while ranks compute."
                                 : "Messages are taken in by ranks that wait.") +
    (data.ranks_per_machine > 1
      ? ` ${data.ranks_per_machine} ranks share ${plural(data.devices_per_machine, "device")}.` : "");
  const most = (field) => ranks.reduce((value, rank) => Math.max(value, rank[field]), 0);
  const sent = total(ranks.map((rank) => rank.bytes_sent));
  const figures = [
    [seconds(data.latency_seconds), "step, slowest rank"],
    [seconds(mean(ranks.map((rank) => rank.exposed_seconds))), "waits for messages, mean"],
    [seconds(most("exposed_seconds")), "waits for messages, most"],
    [seconds(mean(ranks.map((rank) => rank.idle_seconds))), "idle, mean"],
    [bytes(sent), "sent by all ranks"],
    [total(ranks.map((rank) => rank.messages_sent)).toLocaleString("en"), "messages"],
    [bytes(data.workspace_bytes), "workspace"],
    [bytes(data.peak_bytes), "with shards, most"],
  ];
  for (const [value, what] of figures) {
    const card = add(element("figures"), "div", "");
    add(card, "b", value);
    add(card, "span", what);
  }
  element("figures").dataset.bytesSent = sent;
  element("figures").dataset.latency = data.latency_seconds;
}

function writeTable(id, first, rows) {
  const table = element(id), head = add(table, "tr", "");
  [...first, ...data.levels, ""].forEach((name, index) => add(head, "th", name, index < Math.min(2, first.length) ? "name" : ""));
  const most = Math.max(1, ...rows.map((row) => total(row.bytes_sent)));
  for (const row of rows) {
    const line = add(table, "tr", "");
    row.cells.forEach((cell, index) => {
      const field = add(line, "td", "", index < 2 ? "name" : "");
      if (index === 0 && row.colour) {
        const chip = add(field, "i", "", "key chip");
        chip.style.background = row.colour;
        chip.dataset.group = cell;
      }
      field.append(cell);
    });
    for (const sent of row.bytes_sent) add(line, "td", bytes(sent));
    add(add(line, "td", "", "bar"), "i", "").style.width = (100 * total(row.bytes_sent)) / most + "%";
  }
  table.dataset.rows = rows.length;
  table.dataset.bytes = total(rows.map((row) => total(row.bytes_sent)));
}

// ------------------------------------------------------------------ timeline

const view = { begin: 0, end: data.latency_seconds || 1 };
const trackHeight = 3 * LANE + GAP;

function tick(span) {
  const step = Math.pow(10, Math.floor(Math.log10(span / 6)));
  return [1, 2, 5, 10].map((factor) => factor * step).find((each) => span / each <= 10);
}

function drawTimeline() {
  const canvas = element("timeline");
  const [context, width] = prepare(canvas, AXIS + data.tracks.length * trackHeight + GAP);
  const scale = (width - LABEL) / (view.end - view.begin);
  const place = (time) => LABEL + (time - view.begin) * scale;
  const step = tick(view.end - view.begin), bottom = AXIS + data.tracks.length * trackHeight;
  context.fillStyle = style("--dim");
  context.strokeStyle = style("--line");
  for (let time = Math.ceil(view.begin / step) * step; time <= view.end; time += step) {
    context.fillText(seconds(Math.max(0, time)), place(time) + 3, AXIS / 2);
    context.beginPath();
    context.moveTo(place(time), AXIS);
    context.lineTo(place(time), bottom);
    context.stroke();
  }
  const plain = [null, style("--wait"), style("--messages")];
  let bars = 0, drawn = 0;
  data.tracks.forEach((track, index) => {
    const top = AXIS + index * trackHeight;
    context.fillStyle = style("--ink");
    context.fillText(track.name, 8, top + 1.5 * LANE, LABEL - 16);
    const reached = [0, 0, 0]; // the pixel up to which each lane is drawn
    for (const [lane, name, begin, end] of track.slices) {
      ++bars;
      const left = Math.max(LABEL, place(begin)), right = Math.min(width, place(end));
      if (right < LABEL || left > width || right < reached[lane]) continue;
      context.fillStyle = plain[lane] || colours[name];
      context.fillRect(left, top + lane * LANE + 1, Math.max(0.75, right - left - 0.25), LANE - 2);
      reached[lane] = left + 0.75;
      ++drawn;
    }
  });
  canvas.dataset.bars = bars;
  canvas.dataset.drawn = drawn;
  canvas.dataset.tracks = data.tracks.length;
}

// The last slice of a lane at a point, or null. Only slices of the lane of messages may overlap.
function sliceAt(x, y, width) {
  const index = Math.floor((y - AXIS) / trackHeight), track = data.tracks[index];
  const lane = Math.floor((y - AXIS - index * trackHeight) / LANE);
  if (!track || x < LABEL || lane > 2) return null;
  const pixel = (view.end - view.begin) / (width - LABEL);
  const time = view.begin + (x - LABEL) * pixel;
  let best = null;
  for (const slice of track.slices)
    if (slice[0] === lane && slice[2] <= time + pixel && slice[3] >= time - pixel) best = slice;
  return best && [track, best];
}

function listenToTimeline() {
  const canvas = element("timeline");
  const inside = (event) => [event.offsetX, event.offsetY, canvas.clientWidth];
  let dragged = null;
  const show = (begin, end) => {
    const span = Math.min(end - begin, data.latency_seconds), least = data.latency_seconds * 1e-6;
    view.begin = Math.min(Math.max(0, begin), data.latency_seconds - Math.max(span, least));
    view.end = view.begin + Math.max(span, least);
    drawTimeline();
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [x, , width] = inside(event);
    const part = Math.max(0, x - LABEL) / (width - LABEL), span = view.end - view.begin;
    const next = span * Math.exp(event.deltaY * 0.002), at = view.begin + part * span;
    show(at - part * next, at + (1 - part) * next);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    dragged = { x: event.offsetX, begin: view.begin, end: view.end };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => { dragged = null; });
  canvas.addEventListener("dblclick", () => show(0, data.latency_seconds));
  canvas.addEventListener("pointerleave", (event) => showTip(event, ""));
  canvas.addEventListener("pointermove", (event) => {
    const [x, y, width] = inside(event);
    if (dragged) {
      const by = ((dragged.x - x) * (dragged.end - dragged.begin)) / (width - LABEL);
      return show(dragged.begin + by, dragged.end + by);
    }
    const found = sliceAt(x, y, width);
    if (!found) return showTip(event, "");
    const [track, [lane, name, begin, end]] = found;
    showTip(event, `${data.names[name]}\n${track.name} ${LANES[lane]}, ${seconds(end - begin)}` +
                   ` from ${seconds(begin)} to ${seconds(end)}`);
  });
}

// ------------------------------------------------------------------ bytes under way, load

function drawFlight() {
  const height = 140, [context, width] = prepare(element("flight"), height);
  const most = Math.max(1, ...data.flight.flat());
  const place = (part, parts) => LABEL + ((width - LABEL) * part) / parts;
  context.fillStyle = style("--dim");
  context.fillText(bytes(most), 8, 14, LABEL - 16);
  context.fillText("0 B", 8, height - 12, LABEL - 16);
  data.flight.forEach((parts, level) => {
    context.strokeStyle = `hsl(${150 + level * 70} 60% 45%)`;
    context.beginPath();
    parts.forEach((value, part) => {
      const y = height - 8 - (value / most) * (height - 20);
      part ? context.lineTo(place(part, parts.length), y) : context.moveTo(LABEL, y);
    });
    context.stroke();
  });
  element("flight").dataset.levels = data.flight.length;
  if (element("flight-key").childElementCount === 0)
    data.levels.forEach((name, level) => {
      add(element("flight-key"), "i", "", "key").style.background = `hsl(${150 + level * 70} 60% 45%)`;
      add(element("flight-key"), "span", name);
    });
}

function drawLoad() {
  const height = 180, [context, width] = prepare(element("load"), height);
  const each = (width - LABEL) / data.ranks.length, scale = (height - 16) / (data.latency_seconds || 1);
  context.fillStyle = style("--dim");
  context.fillText(seconds(data.latency_seconds), 8, 14, LABEL - 16);
  const [compute, wait, idle] = ["--compute", "--wait", "--idle"].map(style);
  let bars = 0;
  data.ranks.forEach((rank, index) => {
    let bottom = height - 8;
    const rest = data.latency_seconds - rank.compute_seconds - rank.exposed_seconds;
    for (const [value, colour] of [[rank.compute_seconds, compute], [rank.exposed_seconds, wait],
                                   [Math.max(0, rest), idle]]) {
      context.fillStyle = colour;
      context.fillRect(LABEL + index * each, bottom - value * scale,
                       Math.max(each * 0.9, Math.min(each, 1)), value * scale);
      bottom -= value * scale;
    }
    ++bars;
  });
  element("load").dataset.bars = bars;
}

function listenToLoad() {
  const canvas = element("load");
  canvas.addEventListener("pointerleave", (event) => showTip(event, ""));
  canvas.addEventListener("pointermove", (event) => {
    const at = ((event.offsetX - LABEL) * data.ranks.length) / (canvas.clientWidth - LABEL);
    const rank = data.ranks[Math.floor(at)];
    showTip(event, rank ? `rank ${rank.global_rank}\ncomputes ${seconds(rank.compute_seconds)}, waits ` +
      `${seconds(rank.exposed_seconds)}, idle ${seconds(rank.idle_seconds)}\nsends ${bytes(rank.bytes_sent)} in ` +
      plural(rank.messages_sent, "message") : "");
  });
}

function drawAll() {
  drawTimeline();
  drawFlight();
  drawLoad();
}

writeFigures();
writeTable("strategies", ["strategy"], data.strategies.map((one) => ({ cells: [one.strategy], ...one })));
writeTable("groups", ["group", "strategy", "waves"],
           data.groups.map((one) => ({ cells: [one.name, one.strategy, one.waves], colour: colourOfGroup(one.name), ...one })));
element("shown").textContent =
  `${data.tracks.length} of ${plural(data.classes, "class", "classes")} of ranks with equal work and messages, each by its last to end.`;
drawAll();
listenToTimeline();
listenToLoad();
window.addEventListener("resize", drawAll);
document.body.dataset.drawn = "yes";
