const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const SEVERITIES = ["info", "minor", "major", "severe"];
const title = (name) => { const s = String(name).replaceAll("_", " "); return s.charAt(0).toUpperCase() + s.slice(1); };
const spoken = (name) => String(name).replaceAll("_", " ");

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child != null && child !== false));
  return node;
}

function clock(ms, digits = 0) {
  const sign = ms < 0 ? "−" : "";
  const whole = Math.floor(Math.abs(ms) / 1000);
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60, seconds = whole % 60;
  const two = (n) => String(n).padStart(2, "0");
  const rest = digits ? "." + String(Math.floor(Math.abs(ms) % 1000)).padStart(3, "0").slice(0, digits) : "";
  return sign + (hours ? hours + ":" + two(minutes) : minutes) + ":" + two(seconds) + rest;
}
const number = (value) => Math.abs(value) >= 100 ? value.toFixed(0) : String(Math.round(value * 100) / 100);

const state = {
  kinds: new Set(["error", "competence"]), attribute: "", severity: 0, reviewed: "", words: "",
  selected: null, blind: false, thresholds: new Map(), reviewer: "R1", reviews: new Map(),
};

const items = [
  ...data.flags.map((flag) => ({ ...flag, kind: flag.polarity })),
  ...data.decisions.map((decision) => ({ ...decision, kind: "decision", attributes: [], evidence: [] })),
].sort((a, b) => a.start - b.start);
for (const item of items) {
  item.quotes = item.evidence.map((fact) => fact.quote).join(" ").toLowerCase();
  item.text = [item.cue, item.why, item.chosen, item.quotes].join(" ").toLowerCase();
}
const flags = items.filter((item) => item.kind !== "decision");
const itemOf = new Map(items.map((item) => [item.id, item]));

// A flag bears the name of the cue that saw it first; whose the other views are, flags that they raised alone tell.
const measureOf = (fact) => fact.measure + " · " + fact.threshold;
const cueOf = new Map();
for (const flag of flags) for (const fact of flag.evidence) if (!fact.view) cueOf.set(measureOf(fact), flag.cue);

// Thresholds by cue and measure, with the side on which a flag is raised: as the cue says, or, of measures that no cue
// of today takes, below where values lie below and none above.
const thresholds = new Map();
for (const flag of flags) {
  for (const fact of flag.evidence) {
    if (fact.threshold == null || fact.value == null) continue;
    const cue = fact.view ? cueOf.get(measureOf(fact)) ?? "another cue" : flag.cue;
    const key = fact.key = cue + " · " + fact.measure;
    const known = thresholds.get(key) ?? { key, cue, measure: fact.measure, unit: fact.unit, at: fact.threshold, values: [] };
    known.values.push(fact.value);
    thresholds.set(key, known);
  }
}
for (const known of thresholds.values()) {
  known.above = data.at_most[known.cue] !== known.measure
    && (known.values.some((value) => value > known.at) || !known.values.some((value) => value < known.at));
  known.low = Math.min(known.at, ...known.values);
  known.high = Math.max(known.at, ...known.values);
}

// A cue sees a thing where all its facts hold, and a flag stands while any cue still sees it.
function stands(flag) {
  const fallen = new Set(flag.evidence.filter((fact) => !holds(fact)).map((fact) => fact.view));
  return !fallen.size || flag.evidence.some((fact) => !fallen.has(fact.view));
}
function holds(fact) {
  const moved = state.thresholds.get(fact.key);
  if (moved == null || fact.value == null) return true;
  return thresholds.get(fact.key).above ? fact.value >= moved : fact.value <= moved;
}

function shown(item) {
  if (item.kind === "decision") {
    return state.kinds.has("decision") && (!state.words || item.text.includes(state.words)) && !state.attribute && !state.reviewed;
  }
  if (!state.blind) {
    if (!state.kinds.has(item.kind) || SEVERITIES.indexOf(item.severity) < state.severity) return false;
    if (state.attribute && !item.attributes.includes(state.attribute)) return false;
    if (!stands(item)) return false;
  }
  const review = state.reviews.get(item.id);
  if (state.reviewed === "open" ? review : state.reviewed && review?.verdict !== state.reviewed) return false;
  return !state.words || (state.blind ? item.quotes : item.text).includes(state.words);
}
let visible = items.filter(shown);
