const SEVERITIES = ["info", "minor", "major", "severe"];
let data = JSON.parse(document.getElementById("data").textContent);
const state = {
  kinds: new Set(["error", "competence"]), attribute: "", severity: 0, reviewed: "", words: "",
  selected: null, thresholds: new Map(), coder: "", reviews: new Map(),
};

// What a page does beside the shared parts.
const hooks = { selected() {}, clicked() {}, painted() {}, focus: () => null, stepFrom: () => null, decisions: () => decisions, isLater: () => false, follows: () => false, withdrawn: () => "", details: () => true, nothing: () => "", lanes: () => data.attributes.map((each) => [each, title(each)]), lanesOf: (item) => item.attributes };

// Where the time that is shown begins.
const first = () => data.live ? data.from : 0, shareOf = (ms) => (ms - first()) / Math.max(1, length - first());
// The robot still speaks: its turn reaches to now, if no stop was lost.
const MAX_TURN_MS = 60000;
function extendTurns() { for (const said of speech.robot) if (said.is_open) said.end = Math.max(said.end, Math.min(length, said.start + MAX_TURN_MS)); }

let items, flags, itemOf, decisions, speech, longest, length, voices;
// Thresholds by cue and measure, with the side on which a flag is raised: as the cue says, or, of measures that no cue
// of today takes, below where values lie below and none above.
const thresholds = new Map();

// Derive from the data what the parts draw and list.
function index() {
  length = Math.max(1, data.end);
  items = [
    ...data.flags.map((flag) => ({ ...flag, kind: flag.polarity })),
    ...data.decisions.map((decision) => ({ ...decision, kind: "decision", attributes: [], evidence: [] })),
  ].sort((a, b) => a.start - b.start);
  for (const item of items) {
    item.quotes = item.evidence.map((fact) => fact.quote).join(" ").toLowerCase();
    item.text = [item.cue, item.why, item.chosen, item.quotes].join(" ").toLowerCase();
  }
  flags = items.filter((item) => item.kind !== "decision");
  itemOf = new Map(items.map((item) => [item.id, item]));
  decisions = items.filter((item) => item.kind === "decision");
  speech = { robot: data.speech.filter((s) => s.who === "robot"), user: data.speech.filter((s) => s.who !== "robot") };
  extendTurns();
  voices = data.speech.reduce((most, each) => Math.max(most, each.voice ?? 0), 0);
  longest = { robot: longestOf(speech.robot), user: longestOf(speech.user), presence: longestOf(data.presence), items: longestOf(items) };
  indexThresholds();
}
function longestOf(list) { return list.reduce((most, each) => Math.max(most, each.end - each.start), 0); }

const whoSaid = (said) => said.voice && voices > 1 ? `${said.who} ${said.voice}` : said.who;

const measureOf = (fact) => fact.measure + " · " + fact.threshold;
function indexThresholds() {
  thresholds.clear();
  // A flag bears the name of the cue that saw it first; whose the other views are, flags that they raised alone tell.
  const cueOf = new Map();
  for (const flag of flags) for (const fact of flag.evidence) if (!fact.view) cueOf.set(measureOf(fact), flag.cue);
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
  if (!state.kinds.has(item.kind)) return false;
  if (item.kind === "error" && SEVERITIES.indexOf(item.severity) < state.severity) return false;
  if (state.attribute && !item.attributes.includes(state.attribute)) return false;
  if (!stands(item)) return false;
  const review = state.reviews.get(item.id);
  if (state.reviewed === "open" ? review : state.reviewed && review?.verdict !== state.reviewed) return false;
  return !state.words || item.text.includes(state.words);
}
index();
let visible = items.filter(shown);
