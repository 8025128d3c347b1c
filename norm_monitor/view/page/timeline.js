const canvas = byId("canvas"), pen = canvas.getContext("2d");
const view = { from: first(), to: length };
let colours = {}, lanes = [], height = 0, rem = 15, hits = [];

function layout() {
  rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "soft", "line", "fill", "card", "error", "competence", "robot", "user", "presence", "away", "decision", "select", "error-soft", "competence-soft"]) {
    colours[name] = style.getPropertyValue("--" + name).trim();
  }
  let top = 3.4 * rem;
  lanes = [];
  const lane = (key, name, tall, counted = false) => { lanes.push({ key, name, top, tall: tall * rem, counted }); top += tall * rem; };
  lane("robot", "Robot speech", 1.55);
  lane("user", "People's speech", 1.55);
  lane("presence", "People present", 1.7);
  for (const each of data.attributes) lane(each, title(each), 2.15, true);
  lane("decision", "Decisions", 1.6);
  height = top + .4 * rem;
  const labels = byId("lanes");
  labels.style.height = height + "px";
  const axes = [{ name: "Whole session", top: 0, tall: 1.7 * rem, axis: true }, { name: data.epoch == null ? `Time (${length < 3600000 ? "min:s" : "h:min:s"})` : "Time of day", top: 1.9 * rem, tall: 1.3 * rem, axis: true }];
  labels.replaceChildren(...[...axes, ...lanes].map((each) => {
    const node = make("div", { class: each.axis ? "axis" : "" }, make("span", {}, each.name));
    node.style.top = each.top + "px";
    node.style.height = each.tall + "px";
    if (each.counted) {
      const of = (kind) => flags.filter((flag) => flag.kind === kind && flag.attributes.includes(each.key)).length;
      node.append(make("small", {}, make("b", { class: "e" }, String(of("error"))), " / ", make("b", { class: "c" }, String(of("competence")))));
    }
    return node;
  }));
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = height + "px";
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw();
}

const xOf = (ms) => (ms - view.from) / (view.to - view.from) * canvas.clientWidth;
const msOf = (x) => view.from + x / canvas.clientWidth * (view.to - view.from);

function between(sorted, from, to, longest) {
  let low = 0, high = sorted.length;
  while (low < high) { const mid = (low + high) >> 1; if (sorted[mid].start < from - longest) low = mid + 1; else high = mid; }
  const found = [];
  for (let i = low; i < sorted.length && sorted[i].start <= to; i++) if (sorted[i].end >= from) found.push(sorted[i]);
  return found;
}

// However much changes between two frames, it is painted once.
let due = 0;
function draw() {
  due ||= requestAnimationFrame(paint);
}

function paint() {
  due = 0;
  const wide = canvas.clientWidth;
  hits = [];
  pen.clearRect(0, 0, wide, height);
  pen.font = `${.76 * rem}px ${getComputedStyle(document.body).fontFamily}`;
  pen.textBaseline = "middle";
  drawOverview(wide);
  drawAxis(wide);
  for (const each of lanes) {
    pen.fillStyle = colours.line;
    pen.fillRect(0, Math.round(each.top), wide, 1);
    if (each.key === "robot" || each.key === "user") drawSpeech(each);
    else if (each.key === "presence") drawPresence(each);
    else if (each.key !== "decision") drawMiddle(each, wide);
  }
  for (const each of outages()) drawOutage(each);
  const drawn = [...between(visible, view.from, view.to, longest.items).filter((item) => item.kind !== "decision"), ...between(hooks.decisions(), view.from, view.to, 0)];
  for (const item of drawn) if (item.id !== state.selected) drawItem(item, false);
  const chosen = itemOf.get(state.selected);
  if (chosen) drawItem(chosen, true);
  hooks.painted(wide);
  if (!document.documentElement.dataset.ready) document.documentElement.dataset.readyMs = performance.now();
  document.documentElement.dataset.ready = "yes";
  byId("window").textContent = `${clock(view.from)} to ${clock(view.to)} of ${elapsed(length - first())}`;
}

// The whole session in one strip: errors above, competences below, and the part that is shown.
function drawOverview(wide) {
  const tall = 1.7 * rem, middle = tall / 2, bins = Math.max(40, Math.floor(wide / 6)), up = new Array(bins).fill(0), down = new Array(bins).fill(0);
  for (const item of visible) {
    if (item.kind === "decision") continue;
    const bin = Math.min(bins - 1, Math.floor(shareOf(item.start) * bins));
    (item.kind === "error" ? up : down)[bin]++;
  }
  const most = Math.max(1, ...up, ...down);
  pen.fillStyle = colours.fill;
  pen.fillRect(0, 0, wide, tall);
  for (let i = 0; i < bins; i++) {
    const x = i / bins * wide, w = Math.max(1, wide / bins - 1);
    pen.fillStyle = colours.error;
    if (up[i]) pen.fillRect(x, middle - up[i] / most * middle, w, up[i] / most * middle);
    pen.fillStyle = colours.competence;
    if (down[i]) pen.fillRect(x, middle, w, down[i] / most * middle);
  }
  const a = shareOf(view.from) * wide, b = shareOf(view.to) * wide;
  if (b - a < wide - 1) {
    pen.fillStyle = colours.card;
    pen.globalAlpha = .65;
    pen.fillRect(0, 0, a, tall);
    pen.fillRect(b, 0, wide - b, tall);
    pen.globalAlpha = 1;
    pen.strokeStyle = colours.ink;
    pen.strokeRect(a + .5, .5, Math.max(2, b - a - 1), tall - 1);
  }
}

function drawAxis(wide) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600].map((s) => s * 1000);
  const step = steps.find((ms) => ms / (view.to - view.from) * wide > 5.5 * rem) ?? 7200000;
  pen.fillStyle = colours.soft;
  const zero = data.epoch ?? 0;
  for (let at = Math.ceil((view.from + zero) / step) * step - zero; at <= view.to; at += step) {
    const x = xOf(at);
    const text = clock(at), half = pen.measureText(text).width / 2;
    pen.fillStyle = colours.soft;
    pen.fillText(text, Math.min(Math.max(x - half, 0), wide - 2 * half), 2.55 * rem);
    pen.fillStyle = colours.line;
    pen.fillRect(Math.round(x), 3.1 * rem, 1, height - 3.1 * rem);
  }
}

function drawSpeech(lane) {
  for (const said of between(speech[lane.key], view.from, view.to, longest[lane.key])) {
    const x = xOf(said.start), w = Math.max(1.5, xOf(said.end) - x), y = lane.top + lane.tall * .22, h = lane.tall * .56;
    pen.fillStyle = colours[lane.key];
    if (w < 4) { pen.fillRect(x, y, w, h); continue; }
    pen.beginPath();
    pen.roundRect(x, y, w, h, 2.5);
    pen.fill();
    if (w > 6 * rem) {
      pen.save();
      pen.beginPath();
      pen.rect(x, y, w - 5, h);
      pen.clip();
      pen.fillStyle = colours.card;
      pen.fillText(said.text, x + 6, y + h / 2 + .5);
      pen.restore();
    }
  }
}

function drawPresence(lane) {
  for (const part of between(data.presence, view.from, view.to, longest.presence)) {
    const x = xOf(part.start), w = Math.max(1, xOf(part.end) - x), h = lane.tall * Math.min(.36 + .2 * part.people, .85);
    pen.fillStyle = part.away ? colours.away : colours.presence;
    pen.fillRect(x, lane.top + lane.tall - h, w, h);
  }
}

// When no node of a running graph was heard, nothing in the lanes tells that nothing happened.
const outages = () => data.outages ?? [];
const outageText = (outage) => `No node was heard from ${clock(outage.start)} to ${clock(outage.end)}`;
function drawOutage(outage) {
  const left = Math.max(0, xOf(outage.start)), right = Math.min(canvas.clientWidth, xOf(outage.end)), top = 3.1 * rem;
  if (right <= left) return;
  pen.save();
  pen.beginPath();
  pen.rect(left, top, Math.max(2, right - left), height - top);
  pen.clip();
  pen.strokeStyle = colours.soft;
  pen.globalAlpha = .5;
  pen.beginPath();
  // Steps from the start of time, so that the lines stay where they are as the outage grows.
  const tall = height - top, gap = .6 * rem;
  for (let x = Math.floor((left - tall) / gap) * gap; x < right; x += gap) { pen.moveTo(x, height); pen.lineTo(x + tall, top); }
  pen.stroke();
  pen.restore();
}

function drawMiddle(lane, wide) {
  pen.strokeStyle = colours.line;
  pen.setLineDash([2, 4]);
  pen.beginPath();
  pen.moveTo(0, Math.round(lane.top + lane.tall / 2) + .5);
  pen.lineTo(wide, Math.round(lane.top + lane.tall / 2) + .5);
  pen.stroke();
  pen.setLineDash([]);
}

function drawItem(item, chosen) {
  const keys = item.kind === "decision" ? ["decision"] : item.attributes;
  for (const lane of lanes) {
    if (!keys.includes(lane.key)) continue;
    const x = xOf(item.start), middle = lane.top + lane.tall / 2;
    if (item.kind === "decision") { drawDiamond(x, middle, rem * .36, item.answered, chosen); hits.push({ item, x: x - 6, w: 12, lane }); continue; }
    const w = Math.max(4, xOf(item.end) - x);
    const up = item.kind === "error";
    const h = (.4 + .2 * (item.severity ? SEVERITIES.indexOf(item.severity) : 1)) * (lane.tall / 2 - 2);
    const y = up ? middle - h : middle + 1;
    const rejected = state.reviews.get(item.id)?.verdict === "reject";
    if (chosen) {
      pen.fillStyle = colours.select;
      pen.fillRect(x - 5, lane.top + 1, w + 10, lane.tall - 1);
    }
    const colour = colours[item.kind];
    pen.fillStyle = pen.strokeStyle = colour;
    pen.lineWidth = 1.5;
    if (rejected) pen.strokeRect(x + .75, y + .75, Math.max(2, w - 1.5), Math.max(2, h - 1.5));
    else { pen.globalAlpha = chosen || item.end - item.start < 1 ? 1 : .85; pen.fillRect(x, y, w, h); pen.globalAlpha = 1; }
    if (chosen) { pen.fillStyle = colours.ink; pen.fillRect(x, lane.top + 1, 1.5, lane.tall - 1); }
    pen.lineWidth = 1;
    hits.push({ item, x, w, lane });
  }
}

function drawDiamond(x, y, size, filled, chosen) {
  pen.beginPath();
  pen.moveTo(x, y - size); pen.lineTo(x + size, y); pen.lineTo(x, y + size); pen.lineTo(x - size, y);
  pen.closePath();
  pen.fillStyle = pen.strokeStyle = chosen ? colours.ink : colours.decision;
  pen.lineWidth = 1.5;
  if (filled) pen.fill(); else pen.stroke();
  pen.lineWidth = 1;
}

// A click just after a change meets what the change left, though no frame has shown it yet.
function hit(event) {
  if (due) { cancelAnimationFrame(due); paint(); }
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  let best = null, least = 9;
  for (const each of hits) {
    if (y < each.lane.top || y > each.lane.top + each.lane.tall) continue;
    const away = x < each.x ? each.x - x : x > each.x + each.w ? x - each.x - each.w : 0;
    if (away < least) { least = away; best = each.item; }
  }
  return best;
}

function look(from, to) {
  const span = Math.min(Math.max(1, length - first()), Math.max(2000, to - from));
  view.from = Math.min(Math.max(first(), from), length - span);
  view.to = view.from + span;
  draw();
}
// Zoom about the pointer, or else about the moment shown, or else about the middle.
let pointed = null;
function zoom(factor) {
  const moment = hooks.focus(), inView = moment != null && moment >= view.from && moment <= view.to;
  const at = pointed ?? (inView ? moment : (view.from + view.to) / 2);
  const share = (at - view.from) / (view.to - view.from), span = (view.to - view.from) * factor;
  look(at - share * span, at - share * span + span);
}
function reveal(item) {
  const span = view.to - view.from;
  if (item.start < view.from || item.start > view.to) look(item.start - span / 2, item.start + span / 2);
}

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  const box = canvas.getBoundingClientRect();
  const overview = event.clientY - box.top < 1.8 * rem;
  drag = { x: event.clientX, from: view.from, to: view.to, moved: false, overview };
  if (overview) jump(event);
});
function jump(event) {
  const at = first() + (event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth * (length - first()), half = (view.to - view.from) / 2;
  look(at - half, at + half);
}
canvas.addEventListener("pointermove", (event) => {
  const hover = byId("hover");
  pointed = msOf(event.clientX - canvas.getBoundingClientRect().left);
  if (drag) {
    if (Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
    if (drag.overview) jump(event);
    else if (drag.moved) {
      const ms = (drag.x - event.clientX) / canvas.clientWidth * (drag.to - drag.from);
      look(drag.from + ms, drag.to + ms);
    }
    hover.hidden = true;
    return;
  }
  const item = hit(event), outage = item ? null : outages().find((each) => each.start <= pointed && pointed <= each.end);
  hover.hidden = !item && !outage;
  if (!hover.hidden) {
    hover.textContent = item ? clock(item.start, 1) + "  " + nameOf(item) : outageText(outage);
    const box = byId("timeline").getBoundingClientRect();
    hover.style.left = Math.min(event.clientX - box.left + 12, box.width - 200) + "px";
    hover.style.top = event.clientY - box.top + 14 + "px";
  }
});
canvas.addEventListener("pointerleave", () => { pointed = null; byId("hover").hidden = true; });
canvas.addEventListener("pointerup", (event) => {
  const clicked = drag && !drag.moved && !drag.overview;
  drag = null;
  const item = clicked && hit(event);
  if (item) select(item.id);
  else if (clicked) hooks.clicked(msOf(event.clientX - canvas.getBoundingClientRect().left));
});
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey && !event.deltaX) return;
  event.preventDefault();
  if (event.ctrlKey || event.metaKey) { pointed = msOf(event.clientX - canvas.getBoundingClientRect().left); zoom(event.deltaY > 0 ? 1.25 : .8); }
  else { const ms = event.deltaX / canvas.clientWidth * (view.to - view.from); look(view.from + ms, view.to + ms); }
}, { passive: false });
byId("timeline").addEventListener("keydown", (event) => {
  const span = view.to - view.from;
  const does = {
    ArrowLeft: () => look(view.from - span / 5, view.to - span / 5), ArrowRight: () => look(view.from + span / 5, view.to + span / 5),
    "+": () => zoom(.6), "=": () => zoom(.6), "-": () => zoom(1 / .6), 0: () => look(0, length),
  }[event.key];
  if (does) { does(); event.preventDefault(); event.stopPropagation(); }
});
byId("zoom-in").addEventListener("click", () => zoom(.5));
byId("zoom-out").addEventListener("click", () => zoom(2));
byId("zoom-all").addEventListener("click", () => look(0, length));
