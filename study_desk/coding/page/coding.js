// A coder's own events: marked with in and out, coded with the keys of the codebook, and in the log at once.
const codes = new Map(data.codes.map((code) => [code.id, code]));
const codeName = (id, otherwise = "") => { const code = codes.get(id); return code ? code.own ? code.name : `${code.polarity} ${spoken(code.attribute)}` : spoken(otherwise || id); };
const mark = { in: null, out: null };
state.severity = -1; // so that events without a severity are shown

function pressed(button, on) { button.setAttribute("aria-pressed", String(on)); }
const events = (count) => count ? `${count} event${count === 1 ? "" : "s"}` : "no event";
function showProgress() { byId("count").textContent = events(flags.length); }
hooks.nothing = () => "You have marked nothing so far. Press I where something begins and O where it ends, then the key of a code.";

function tell(saved, problem = "") {
  byId("saved").textContent = saved;
  byId("unsaved").hidden = !problem;
  byId("unsaved").textContent = problem && `Not saved: ${problem}`;
}
// One after the other, so that what was pressed first is in the log first.
let queue = Promise.resolve();
function post(path, body, then) {
  queue = queue.then(async () => {
    tell("Saving …");
    let problem = "the server does not answer; ask who gave you the link to start it again";
    try {
      const content = typeof body === "function" ? body() : body;
      if (!content) { tell(""); return; }
      const answer = await fetch(path, { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(content) });
      if (answer.ok) { tell("Saved in the log."); then(await answer.json()); return; }
      problem = await answer.text();
    } catch (error) { problem = error instanceof TypeError ? problem : error.message; }
    tell("", problem);
  });
}

function addEvent(code) {
  if (data.done) return;
  const at = replay.at, ends = mark.in == null ? [at, at] : [mark.in, mark.out ?? at].sort((a, b) => a - b), before = { ...mark };
  post("events", { code: code.id, start_ms: ends[0], end_ms: ends[1] }, (item) => {
    if (mark.in === before.in) setMark(null, null);
    keep(item);
  });
}
const formOf = (item) => ({ label_id: item.label_id, code: item.code, start_ms: item.start, end_ms: item.end, severity: item.severity, comment: item.why });
const own = (id) => data.flags.find((flag) => flag.id === id);
function change(id, changes) { post("events", () => own(id) && { ...formOf(own(id)), ...changes }, keep); }
function keep(item) {
  data.flags = [...data.flags.filter((flag) => flag.id !== item.id), item];
  state.selected = item.id;
  index();
  layout();
  refresh();
  const top = visible.findIndex((each) => each.id === item.id) * 3.6 * rem, low = top + 3.6 * rem - list.clientHeight;
  list.scrollTop = Math.max(low, Math.min(top, list.scrollTop));
}
function removeEvent(item) {
  const form = formOf(item);
  post("events/remove", { label_id: item.label_id }, () => {
    data.flags = data.flags.filter((flag) => flag.id !== item.id);
    state.selected = null;
    index();
    layout();
    refresh();
    byId("saved").replaceChildren("Removed. ", make("button", { type: "button", onclick: () => post("events", form, keep) }, "Undo"));
  });
}
// A competence has no severity, as in the forms for ELAN and BORIS.
const isError = (id) => (codes.get(id)?.polarity ?? id.split("_")[0]) === "error";
function setSeverity(severity) {
  // What is still being saved becomes the selected event.
  post("events", () => {
    const item = own(state.selected);
    if (item && item.polarity !== "error") throw new Error("a competence has no severity; choose an error");
    return item && { ...formOf(item), severity };
  }, keep);
}

function setMark(from, to) {
  mark.in = from;
  mark.out = to;
  byId("mark-text").textContent = from == null ? "A code alone marks an instant." : to == null ? `In at ${clock(from, 1)}. Press Out, or a code to end here.` : `${clock(Math.min(from, to), 1)} to ${clock(Math.max(from, to), 1)}: press a code.`;
  draw();
}
const markIn = () => setMark(replay.at, null);
function markOut() {
  if (mark.in != null) setMark(mark.in, replay.at);
  else byId("mark-text").textContent = "Press In first, where the event begins.";
}
hooks.painted = (wide) => {
  const x = xOf(replay.at);
  if (mark.in != null) {
    const from = xOf(Math.min(mark.in, mark.out ?? replay.at)), to = xOf(Math.max(mark.in, mark.out ?? replay.at));
    pen.globalAlpha = .18;
    pen.fillStyle = colours.ink;
    pen.fillRect(from, 3.1 * rem, Math.max(2, to - from), height - 3.1 * rem);
    pen.globalAlpha = 1;
  }
  pen.fillStyle = colours.ink;
  pen.fillRect(Math.min(replay.at / length * wide, wide - 2), 0, 2, 1.7 * rem);
  if (x >= 0 && x <= wide) pen.fillRect(Math.min(x, wide - 2), 3.1 * rem, 2, height - 3.1 * rem);
};
hooks.selected = (item) => { play(false); seek(item.start); };

function fillCodes() {
  const button = (code) => make("button", { type: "button", class: "code " + code.polarity, title: code.definition, "data-code": code.id, "aria-keyshortcuts": code.key || false, onmousedown: (event) => event.preventDefault(), onclick: () => addEvent(code) },
    make("span", {}, code.own ? code.name : title(code.attribute)), code.key && make("kbd", { "aria-hidden": "true" }, code.key.toUpperCase() === code.key ? code.key : code.key.toUpperCase()));
  const group = (name, polarity) => make("div", { role: "group", "aria-label": name }, make("h3", {}, name), make("div", { class: "code-group" }, ...data.codes.filter((code) => code.polarity === polarity).map(button)));
  const severities = make("div", { role: "group", "aria-label": "Severity of the chosen event" }, make("h3", {}, "Severity of the chosen event"), make("div", { class: "code-group" }, ...Object.entries(data.severities).map(([severity, meaning]) =>
    make("button", { type: "button", class: "code severity", title: meaning, "data-severity": severity, "aria-keyshortcuts": data.severity_keys[severity], onmousedown: (event) => event.preventDefault(), onclick: () => setSeverity(severity) }, make("span", {}, title(severity)), data.severity_keys[severity] && make("kbd", { "aria-hidden": "true" }, data.severity_keys[severity].toUpperCase())))));
  const left = data.without_attribute.length && make("p", { class: "explain" }, `Not here, because they name no attribute in study.yaml: ${data.without_attribute.join(", ")}.`);
  const meanings = [...data.codes.map((code) => [codeName(code.id), code.definition]), ...Object.entries(data.severities).map(([severity, meaning]) => [`severity ${severity}`, meaning])];
  const codebook = make("details", { id: "codebook" }, make("summary", {}, "Codebook"), make("dl", {}, ...meanings.flatMap(([name, meaning]) => [make("dt", {}, name), make("dd", {}, meaning)])));
  byId("codes").replaceChildren(...[group("Errors", "error"), group("Competences", "competence"), severities, codebook, left].filter(Boolean));
}

// A moment as people write it, 1:02:03.4, in milliseconds; NaN where it is none.
function momentOf(text) {
  const parts = text.trim().split(":");
  if (parts.length > 3 || !parts.every((part) => /^\d+([.,]\d+)?$/.test(part))) return NaN;
  return Math.round(parts.reduce((sum, part) => sum * 60 + Number(part.replace(",", ".")), 0) * 1000);
}
// The controls of an event: its code, its times, its severity.
function eventFields(item) {
  const choice = (name, label, pairs, chosen) => make("label", {}, make("span", {}, label), make("select", { name }, ...pairs.map(([value, text]) => make("option", { value, selected: value === (chosen ?? "") }, text))));
  const moment = (name, label, ms) => make("label", {}, make("span", {}, label), make("span", { class: "row" }, make("input", { name, value: elapsed(ms, 3), size: 9, autocomplete: "off", "data-exact": ms }), make("button", { type: "button", onclick: (event) => { const box = event.target.previousSibling; box.value = elapsed(replay.at, 3); box.dataset.exact = replay.at; } }, "Now")));
  const known = codes.has(item.code) ? [] : [[item.code, spoken(item.code)]];
  const code = choice("code", "Code", [...known, ...data.codes.map((each) => [each.id, codeName(each.id)])], item.code);
  const severity = choice("severity", "Severity", [["", "not given"], ...SEVERITIES.filter((each) => each in data.severities || each === item.severity).map((each) => [each, each])], item.severity);
  const fit = () => { severity.hidden = !isError(code.querySelector("select").value); };
  code.addEventListener("change", fit);
  fit();
  return [code, severity, moment("start", "Start", item.start), moment("end", "End", item.end)];
}
// What a form says, or null, after it told why not.
function eventOf(form, alarm) {
  const exact = (box) => box.value === elapsed(Number(box.dataset.exact), 3) ? Number(box.dataset.exact) : momentOf(box.value);
  const { code, severity, start, end } = form.elements, ends = [exact(start), exact(end)];
  alarm.textContent = ends.some(Number.isNaN) ? "Write times as minutes and seconds, such as 2:03.5." : ends[1] < ends[0] ? "The end is before the start." : ends[1] > length + 1 ? `The session ends at ${elapsed(length, 1)}.` : "";
  return alarm.textContent ? null : { code: code.value, severity: isError(code.value) && severity.value || null, start_ms: ends[0], end_ms: Math.min(ends[1], length) };
}

let detailed = "";
hooks.details = (item) => {
  const key = item ? JSON.stringify([item.id, formOf(item)]) : "";
  if (item && key === detailed) return false; // so that nobody loses what is being typed
  detailed = key;
  const box = byId("details");
  if (!item) { box.replaceChildren(make("p", { class: "empty" }, "Choose an event in the list or the timeline to change it.")); return false; }
  const alarm = make("p", { class: "explain", role: "alert" });
  const comment = make("input", { name: "comment", maxlength: 500, value: item.why, autocomplete: "off" });
  const form = make("form", { class: "event", onsubmit: (event) => {
    event.preventDefault();
    const found = eventOf(form, alarm);
    if (found) change(item.id, { ...found, comment: comment.value });
  } }, ...eventFields(item), make("label", { class: "wide" }, make("span", {}, "Comment"), comment), alarm,
  make("div", { class: "row wide" }, make("button", { type: "submit" }, "Save"), make("button", { type: "button", onclick: () => removeEvent(item) }, "Remove", make("kbd", { "aria-hidden": "true" }, "Del"))));
  box.replaceChildren(make("p", { class: "name" }, title(codeName(item.code, item.cue))), make("p", { class: "facts" }, make("span", { class: "sev " + item.kind }, kindOf(item)), make("span", {}, timeOf(item))), form);
  return false;
};

byId("mark-in").addEventListener("click", markIn);
byId("mark-out").addEventListener("click", markOut);
byId("finish-open").addEventListener("click", () => {
  byId("finish-text").textContent = `You marked ${events(flags.length)}. From then on your coding stays as it is, and you see what the monitor and the others found.`;
  byId("finish").showModal();
});
byId("finish").addEventListener("close", () => {
  if (byId("finish").returnValue === "yes") post("done", {}, () => location.reload());
});
