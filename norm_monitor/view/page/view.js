// The page over a timeline: it takes what changed, and the keys.
const link = { problem: "" };
function pressed(button, on) { button.setAttribute("aria-pressed", String(on)); }

const plural = (count, one, many = one + "s") => `${count} ${count === 1 ? one : many}`;
function showProgress() {
  const errors = flags.filter((flag) => flag.kind === "error").length;
  const counts = `${plural(errors, "error")}, ${plural(flags.length - errors, "competence")}, ${plural(decisions.length, "decision")}`;
  byId("meta").textContent = data.live ? `since ${clock(data.from)} · ${counts}` : `${elapsed(length)} · ${counts}` + (data.complete ? "" : ` so far · read to ${clock(data.read)}`);
}
function showNotes() {
  showStopped();
  const lost = data.state.lost ? `${plural(data.state.lost, "message")} did not reach this page's server.` : "";
  const notes = [link.problem, data.state.silence, ...data.notes, lost, data.dropped ? `${data.dropped} older items made room for newer ones and are not shown.` : ""].filter(Boolean);
  byId("notes").hidden = !notes.length;
  byId("notes").replaceChildren(...notes.map((note) => make("p", {}, note)));
}

const KINDS = ["speech", "presence", "flags", "decisions", "health", "outages", "reviews"];
const known = Object.fromEntries(KINDS.map((kind) => [kind, new Map()]));
function merge(changes) {
  const wasWhole = view.to >= length, before = length;
  for (const kind of KINDS) {
    for (const item of changes[kind]) known[kind].set(item.id, item);
    for (const [id, item] of known[kind]) if (item.end < changes.from) known[kind].delete(id);
  }
  const sorted = (kind) => [...known[kind].values()].sort((a, b) => a.start - b.start);
  data = { ...data, ...changes, ...Object.fromEntries(KINDS.map((kind) => [kind, sorted(kind)])) };
  data.flags = data.flags.filter((flag) => flag.state !== "withdrawn");
  state.reviews = new Map(data.reviews.map((review) => [review.event_id, review]));
  stretches = data.presence;
  data.presence = stretches.filter((part) => part.people);
  index();
  if (data.live) {
    tellTime(data.end);
    length = Math.max(length, liveEnd());
    followEnd(before);
  } else if (wasWhole) { view.from = 0; view.to = length; }
  showNotes();
  showSettings();
  if (changes.complete || changes.speech.length || lines.size !== data.speech.length) fillTranscript();
  if (changes.flags.length || !lanes.length) layout();
  refresh();
  seek(replay.live ? length : replay.at);
}

hooks.withdrawn = (id) => {
  const flag = known.flags.get(id);
  return flag?.state === "withdrawn" ? `${title(flag.cue || flag.attributes[0])}, ${clock(flag.start, 1)}: ${flag.why}` : "";
};
// The details stay as they are until something in them changes, so that nobody loses what is being typed there.
let detailed = "";
hooks.details = (item) => {
  const key = item && JSON.stringify([item.id, flags.includes(item) && known.flags.get(item.id), state.reviews.get(item.id), data.speech.filter((said) => said.end > item.start - 15000 && said.start < item.end + 12000).length, data.state.settings]);
  const changed = key !== detailed;
  detailed = key;
  return changed;
};
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
async function follow() {
  while (!data.complete) {
    try {
      // A connection that died while the computer slept says nothing.
      const answer = await fetch(`changes?since=${data.version}`, { headers: { "X-Token": data.token }, signal: AbortSignal.timeout(40000) });
      link.problem = answer.ok ? "" : await answer.text();
      if (!answer.ok) { showNotes(); seek(replay.at); return; }
      merge(await answer.json());
      await pause(data.live ? 50 : 200);
    } catch (error) {
      link.problem ||= `This page's server does not answer since ${clock(data.end)}. What arrived before stays on the page. Start ${data.program} view again, and open the address that it prints.`;
      showNotes();
      seek(replay.live ? length : replay.at);
      await pause(1000);
    }
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range") return;
  if (event.key === " " && event.target.tagName === "BUTTON") return;
  const does = {
    j: () => step(1), k: () => step(-1), " ": () => play(!(replay.playing || replay.live)), l: data.live && goLatest,
    ",": () => { play(false); seek(replay.at - 1000); }, ".": () => { play(false); seek(replay.at + 1000); },
    "?": () => byId("keys").showModal(), "/": () => byId("words").focus(),
  }[event.key.toLowerCase()];
  if (does) { event.preventDefault(); does(); }
});

state.kinds.add("decision");
fillFilters(data.all_attributes);
byId("title").textContent = data.title;
setDark(window.matchMedia("(prefers-color-scheme: dark)").matches);
merge(data);
if (data.live) startLive();
follow();
new ResizeObserver(() => layout()).observe(byId("timeline"));
// A sticky card hides what the page scrolls below it.
const momentCard = document.querySelector(".moment-card");
new ResizeObserver(() => {
  const { position, top } = getComputedStyle(momentCard);
  document.documentElement.style.setProperty("--stuck", position === "sticky" ? momentCard.offsetHeight + parseFloat(top) + "px" : "0px");
}).observe(momentCard);
