// The keys of the coding page, and its start. A code has its key wherever that is shown.
const PLAYER_KEYS = [["Space", "play, pause"], ["← →", "a second back, on; with Shift ten"], [", .", "a tenth of a second back, on"]];
const CODER_KEYS = [["I", "in: an event begins here"], ["O", "out: it ends here"], ["↑ ↓", "previous, next of your events"], ["Del", "remove the chosen event"], ["Esc", "drop in and out, or undo changes of a form"]];
const TIMELINE_KEYS = [["← → + − 0", "move, zoom and reset the timeline, when it is focused"]];

function codeOf(key) {
  return data.codes.find((code) => code.key && code.key === key) ?? data.codes.find((code) => code.key && code.key.toLowerCase() === key.toLowerCase());
}
// The page stays where it is, so that the player stays in sight.
function chooseNext(by) {
  const at = visible.findIndex((item) => item.id === state.selected), near = visible.findIndex((item) => item.start >= replay.at);
  const next = at >= 0 ? at + by : by > 0 ? near : (near < 0 ? visible.length : near) - 1;
  if (visible[next]) select(visible[next].id);
}
function escape() {
  if (openForm) closeForm();
  else if (byId("details").contains(document.activeElement)) {
    detailed = "";
    showDetails();
    list.focus();
  } else setMark(null, null);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open || byId("finish").open) return;
  if (event.key === "Escape") { escape(); return; }
  const target = event.target, by = event.shiftKey ? 10000 : 1000;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) && target.type !== "range") return;
  if ((event.key === " " || event.key === "Enter") && /^(BUTTON|SUMMARY)$/.test(target.tagName)) return;
  if (/^Arrow|^ $/.test(event.key) && event.key !== " " && (target.id === "list" || target.id === "compare-scroll")) return;
  const selected = own(state.selected);
  const does = {
    " ": () => play(!replay.playing), ArrowLeft: () => seek(replay.at - by), ArrowRight: () => seek(replay.at + by),
    ",": () => seek(replay.at - 100), ".": () => seek(replay.at + 100), "?": () => byId("keys").showModal(),
    ...(data.done ? {} : { i: markIn, o: markOut, ArrowUp: () => chooseNext(-1), ArrowDown: () => chooseNext(1), Delete: selected && (() => removeEvent(selected)), Backspace: selected && (() => removeEvent(selected)) }),
  };
  const severity = Object.keys(data.severities).find((each) => data.severity_keys[each] === event.key.toLowerCase());
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const code = data.done ? null : codeOf(event.key);
  const run = does[key] ?? (code ? () => addEvent(code) : severity && !data.done ? () => setSeverity(severity) : null);
  if (run) { event.preventDefault(); run(); }
});

function fillKeys() {
  const severities = Object.entries(data.severity_keys).map(([severity, key]) => [key.toUpperCase(), `severity ${severity} for the chosen event`]);
  const own = data.done ? [] : [...CODER_KEYS, ...data.codes.filter((code) => code.key).map((code) => [code.key, codeName(code.id)]), ...severities];
  byId("key-list").replaceChildren(...[...PLAYER_KEYS, ...own, ...TIMELINE_KEYS].flatMap(([key, does]) => [make("dt", {}, ...key.split(" ").map((each) => make("kbd", {}, each))), make("dd", {}, does)]));
}

byId("kicker").textContent = data.info.study ? `Study ${data.info.study}` : "A session without a study";
byId("title").textContent = `Session ${data.info.session}`;
const condition = data.info.condition ? ["condition ", make("bdi", {}, data.info.condition), " · "] : [];
byId("meta").replaceChildren(...condition, "coder ", make("bdi", {}, data.coder), data.done ? " · done" : " · you see neither the monitor's flags nor other coders' events until you mark the session as done");
byId("notes").hidden = !data.notes.length;
byId("notes").replaceChildren(...data.notes.map((note) => make("p", {}, note)));
byId("footer").textContent = "Times count from the start of the session. Every version of an event stays in the log.";
if (data.done) startComparing();
else fillCodes();
fillKeys();
setMark(null, null);
setDark(window.matchMedia("(prefers-color-scheme: dark)").matches);
refresh();
seek(0);
new ResizeObserver(() => layout()).observe(byId("timeline"));
