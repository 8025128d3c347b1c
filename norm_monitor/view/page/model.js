const SEVERITIES = ["info", "minor", "major", "severe"];
let data = JSON.parse(document.getElementById("data").textContent);
const state = {
  kinds: new Set(["error", "competence"]), attribute: "", severity: 0, words: "",
  selected: null, coder: "", reviews: new Map(),
};

// What a page does beside the shared parts.
const hooks = { selected() {}, clicked() {}, painted() {}, focus: () => null, stepFrom: () => null, decisions: () => decisions, isLater: () => false, follows: () => false, withdrawn: () => "", details: () => true, nothing: () => "" };

// Where the time that is shown begins.
const first = () => data.live ? data.from : 0, shareOf = (ms) => (ms - first()) / Math.max(1, length - first());
// The robot still speaks: its turn reaches to now, if no stop was lost.
const MAX_TURN_MS = 60000;
function extendTurns() { for (const said of speech.robot) if (said.is_open) said.end = Math.max(said.end, Math.min(length, said.start + MAX_TURN_MS)); }

let items, flags, itemOf, decisions, speech, longest, length, voices;

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
}
function longestOf(list) { return list.reduce((most, each) => Math.max(most, each.end - each.start), 0); }

const whoSaid = (said) => said.voice && voices > 1 ? `${said.who} ${said.voice}` : said.who;

function shown(item) {
  if (item.kind === "decision") {
    return state.kinds.has("decision") && (!state.words || item.text.includes(state.words)) && !state.attribute;
  }
  if (!state.kinds.has(item.kind)) return false;
  if (item.kind === "error" && SEVERITIES.indexOf(item.severity) < state.severity) return false;
  if (state.attribute && !item.attributes.includes(state.attribute)) return false;
  return !state.words || item.text.includes(state.words);
}
index();
let visible = items.filter(shown);
