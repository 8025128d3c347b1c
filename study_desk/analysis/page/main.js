function pressed(button, on) { button.setAttribute("aria-pressed", String(on)); }

function fillHead() {
  const info = data.info;
  document.title = `Session ${info.session}`;
  byId("kicker").textContent = info.study ? `Study ${info.study}` : "A bag without a study";
  byId("title").textContent = `Session ${info.session}`;
  // Each name in a direction of its own, or an Arabic pseudonym would reorder what stands beside it.
  const name = (text) => make("bdi", {}, text);
  const people = info.participants.flatMap((each, i) => [i ? ", " : `participant${info.participants.length > 1 ? "s" : ""} `, name(each)]);
  const parts = [info.condition && ["condition ", name(info.condition)], people, info.robot && [name(info.robot)], info.date && [info.date]].filter((part) => part.length);
  byId("meta").replaceChildren(...parts.flatMap((part, i) => i ? [" · ", ...part] : part));
  byId("footer").textContent = `Made by Tactful ${info.software_version || "(version unknown)"} from ${data.source}. Head of the log ${data.head}. Times count from the start of the session. Flags are a monitor's advice and no measure of a person.`;
  if (data.notes.length) {
    byId("notes").hidden = false;
    byId("notes").replaceChildren(...data.notes.map((note) => make("p", {}, note)));
  }
  const minutes = length / 60000, errors = flags.filter((f) => f.kind === "error").length, good = flags.length - errors;
  const share = (who) => Math.round(100 * speech[who].reduce((sum, s) => sum + s.end - s.start, 0) / length) + " %";
  const rate = (count) => (count / minutes).toFixed(1) + " a minute";
  const grave = flags.filter((f) => f.kind === "error" && SEVERITIES.indexOf(f.severity) > 1).length;
  const tiles = [
    ["Length", clock(length), length < 3600000 ? "min:s" : "h:min:s"], ["Errors", errors, rate(errors), "error"], ["Major or severe", grave, errors ? `of ${errors}` : ""],
    ["Competences", good, rate(good), "competence"], ["Robot speaking", share("robot"), `user ${share("user")}`], ["Decisions", data.decisions.length, `${data.decisions.filter((d) => !d.answered).length} without action`],
  ];
  byId("tiles").replaceChildren(...tiles.map(([name, value, extra, kind]) => make("div", { class: kind ?? "" }, make("dd", {}, String(value), extra ? make("small", {}, extra) : ""), make("dt", {}, name))));
  for (const tile of byId("tiles").children) tile.prepend(tile.lastChild);
}

function fillSliders() {
  const all = [...thresholds.values()].sort((a, b) => b.values.length - a.values.length);
  byId("whatif-card").hidden = !all.length;
  byId("sliders").replaceChildren(...all.map((each) => {
    const span = each.high - each.low || 1, unit = each.unit ? " " + each.unit : "";
    const output = make("output", {}, `${number(each.at)}${unit}`);
    const slider = make("input", { type: "range", min: each.low - span * .05, max: each.high + span * .05, step: span / 200, value: each.at, "data-key": each.key, "data-above": String(each.above) });
    slider.addEventListener("input", () => {
      const moved = Number(slider.value);
      state.thresholds.set(each.key, moved);
      const left = each.values.filter((value) => each.above ? value >= moved : value <= moved).length;
      output.textContent = `${number(moved)}${unit} (was ${number(each.at)}): ${left} of ${each.values.length}`;
      refresh();
    });
    return make("label", {}, make("span", {}, `${title(each.cue)}: ${each.measure}`), output, slider);
  }));
}
byId("whatif-reset").addEventListener("click", () => { state.thresholds.clear(); fillSliders(); refresh(); });

// What coders judged of a flag while the session ran.
function judge(flag) {
  const reviews = data.reviews.filter((review) => review.event_id === flag.id);
  return reviews.length ? make("p", { class: "explain judge" }, "In the log: " + reviews.map((review) => `${review.coder} ${MARKS[review.verdict].slice(2)}`).join(", ") + ".") : null;
}
function showProgress() {
  const fallen = flags.filter((flag) => !stands(flag)).length;
  byId("whatif-sum").textContent = fallen ? `${flags.length - fallen} of ${flags.length} flags would remain` : "";
}
// On paper: light, the width of a page, and every flag of the list.
let wasDark = false;
function setPrinting(on) {
  if (on) wasDark = document.documentElement.classList.contains("dark");
  document.documentElement.classList.toggle("printing", on);
  setDark(!on && wasDark);
  fillList();
  paint();
}
addEventListener("beforeprint", () => setPrinting(true));
addEventListener("afterprint", () => setPrinting(false));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && !/^(range|checkbox)$/.test(event.target.type)) return;
  const does = {
    j: () => step(1), k: () => step(-1), "?": () => byId("keys").showModal(), "/": () => byId("words").focus(),
  }[event.key.toLowerCase()];
  if (does) { event.preventDefault(); does(); }
});

state.reviews = new Map(data.reviews.map((review) => [review.event_id, review]));
fillHead();
fillFilters(data.attributes);
fillSliders();
setDark(window.matchMedia("(prefers-color-scheme: dark)").matches);
refresh();
new ResizeObserver(() => layout()).observe(byId("timeline"));
