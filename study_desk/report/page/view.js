// The page over a timeline: it takes what changed, and the keys.
const judge = () => null;
const media = () => [];
function pressed(button, on) { button.setAttribute("aria-pressed", String(on)); }

function showProgress() {
  const errors = flags.filter((flag) => flag.kind === "error").length;
  byId("meta").textContent = `${clock(length)} · ${errors} ${errors === 1 ? "error" : "errors"}, ${flags.length - errors} ${flags.length - errors === 1 ? "competence" : "competences"}, ${decisions.length} ${decisions.length === 1 ? "decision" : "decisions"}` + (data.complete ? "" : ` so far · read to ${clock(data.read)}`);
}
function showNotes() {
  const notes = [...data.notes, ...(data.dropped ? [`${data.dropped} older items made room for newer ones and are not shown.`] : [])];
  byId("notes").hidden = !notes.length;
  byId("notes").replaceChildren(...notes.map((note) => make("p", {}, note)));
}

const KINDS = ["speech", "presence", "flags", "decisions", "health"];
const known = Object.fromEntries(KINDS.map((kind) => [kind, new Map()]));
function merge(changes) {
  const wasWhole = view.to >= length, before = JSON.stringify(data.attributes);
  for (const kind of KINDS) {
    for (const item of changes[kind]) known[kind].set(item.id, item);
    for (const [id, item] of known[kind]) if (item.end < changes.from) known[kind].delete(id);
  }
  const sorted = (kind) => [...known[kind].values()].sort((a, b) => a.start - b.start);
  data = { ...data, ...changes, ...Object.fromEntries(KINDS.map((kind) => [kind, sorted(kind)])) };
  data.flags = data.flags.filter((flag) => flag.state !== "withdrawn");
  data.presence = data.presence.filter((part) => part.people);
  index();
  byId("cursor").max = length;
  if (wasWhole) { view.from = 0; view.to = length; }
  showNotes();
  if (before !== JSON.stringify(data.attributes) || changes.flags.length) layout();
  refresh();
  seek(replay.at);
}

async function follow() {
  while (!data.complete) {
    try {
      const answer = await fetch(`changes?since=${data.version}`, { headers: { "X-Token": data.token } });
      if (!answer.ok) { byId("meta").textContent = await answer.text(); return; }
      merge(await answer.json());
      await new Promise((resolve) => setTimeout(resolve, 200));
    } catch (error) {
      byId("meta").textContent = "The server does not answer: start ./tactful view again.";
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
}

for (const chip of document.querySelectorAll(".chip")) {
  chip.addEventListener("click", () => {
    const kind = chip.dataset.kind;
    if (!state.kinds.delete(kind)) state.kinds.add(kind);
    pressed(chip, state.kinds.has(kind));
    refresh();
  });
}
byId("words").addEventListener("input", (event) => { state.words = event.target.value.trim().toLowerCase(); refresh(); });

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range") return;
  if (event.key === " " && event.target.tagName === "BUTTON") return;
  const does = {
    j: () => step(1), k: () => step(-1), " ": () => play(!replay.playing), ",": () => { play(false); seek(replay.at - 1000); }, ".": () => { play(false); seek(replay.at + 1000); },
    "?": () => byId("keys").showModal(), "/": () => byId("words").focus(),
  }[event.key.toLowerCase()];
  if (does) { event.preventDefault(); does(); }
});

state.kinds.add("decision");
byId("title").textContent = data.title;
setDark(window.matchMedia("(prefers-color-scheme: dark)").matches);
merge(data);
follow();
new ResizeObserver(() => layout()).observe(byId("timeline"));
