// Once a coding is done: all codings in rows, what differs side by side, and what the coders agree on.
const of = (opinion) => `${codeName(opinion.code)}${opinion.severity ? `, ${opinion.severity}` : ""}`;
const rowOf = (id) => byId("compared-" + id);
let openForm = "";

function startComparing() {
  hooks.lanes = () => data.rows.map((row) => [row, row === "monitor" || row === "consensus" ? title(row) : row]);
  hooks.lanesOf = (item) => [item.coder];
  hooks.details = () => false;
  hooks.selected = (item) => {
    play(false);
    seek(item.start);
    const event = data.compared.find((each) => each.opinions[item.coder] && each.opinions[item.coder].start === item.start || each.settled?.label?.id === item.id);
    if (event) rowOf(event.id)?.scrollIntoView({ block: "nearest" });
  };
  for (const id of ["own", "codes", "finish-open"]) byId(id).hidden = true;
  document.querySelector(".marks").hidden = true;
  document.documentElement.classList.add("comparing");
  byId("stage").after(byId("compare"));
  byId("compare").hidden = false;
  byId("compare-shown").addEventListener("change", fillCompared);
  byId("adopt").addEventListener("click", () => post("consensus/agreed", {}, () => location.reload()));
  byId("list-title").textContent = "Events";
  fillCompared();
}

const SHOWN = { open: (event) => !event.settled, differs: (event) => !event.agreed, all: () => true };
function fillCompared() {
  const together = data.coders.length > 1, shown = data.compared.filter(SHOWN[byId("compare-shown").value]);
  const settled = data.compared.filter((event) => event.settled).length, agreed = data.compared.filter((event) => event.agreed && !event.settled).length;
  byId("compare-count").textContent = together ? `${settled} of ${events(data.compared.length)} settled` : "";
  byId("adopt").hidden = !together || !agreed;
  byId("adopt").textContent = `Take over ${agreed} on which all agree`;
  const waiting = data.waiting.length ? ` Not done yet: ${data.waiting.join(", ")}.` : "";
  byId("compare-text").textContent = (together ? "Onsets within a second are one event. A consensus label keeps what each coder had said; agreement leaves it out." : "Nobody else has marked this session as done, so there is nothing to compare. Load the page again to look.") + waiting;
  byId("compare-scroll").hidden = byId("compare-shown").parentElement.hidden = !together;
  if (!together) return;
  const head = make("thead", {}, make("tr", {}, ...["Time", ...data.coders, "Consensus"].map((name) => make("th", { scope: "col" }, name))));
  const none = make("tr", {}, make("td", { colspan: data.coders.length + 2, class: "empty" }, data.compared.length ? "Nothing is left here." : "No coder marked any event."));
  byId("compared").replaceChildren(head, make("tbody", {}, ...(shown.length ? shown.map(comparedRow) : [none])));
}

function comparedRow(event) {
  const start = Math.min(...Object.values(event.opinions).map((opinion) => opinion.start));
  const kinds = new Set(Object.values(event.opinions).map(of));
  const cell = (coder) => {
    const opinion = event.opinions[coder];
    if (!opinion) return make("td", { class: "differs", "data-row": coder }, "nothing");
    return make("td", { class: kinds.size > 1 ? "differs" : "", "data-row": coder }, make("span", { class: "sev " + opinion.polarity }, of(opinion)), make("small", {}, clock(opinion.start, 1) + (opinion.end > opinion.start ? `, ${secondsBetween(opinion.start, opinion.end)} s` : ", an instant")));
  };
  return make("tr", { id: "compared-" + event.id }, make("th", { scope: "row" }, make("button", { type: "button", class: "moment", onclick: () => { play(false); seek(start); } }, clock(start, 1))),
    ...data.coders.map(cell), make("td", { "data-row": "Consensus" }, openForm === event.id ? consensusForm(event) : event.settled ? settledParts(event) : choices(event)));
}
function settledParts(event) {
  const { label, editor } = event.settled;
  return make("div", { class: "row" }, label ? make("span", { class: "sev " + label.polarity }, of(label)) : make("span", {}, "no event"), make("small", {}, `entered by ${editor}`), make("button", { type: "button", "data-first": "", onclick: () => reopen(event.id, "choices") }, "Change"));
}
const reopened = new Set();
function reopen(id) {
  reopened.add(id);
  rowOf(id).lastChild.replaceChildren(choices(data.compared.find((each) => each.id === id)));
  rowOf(id).querySelector("td:last-child button").focus();
}
function choices(event) {
  const settle = (text, body) => make("button", { type: "button", onclick: () => agree(event.id, body) }, text);
  return make("div", { class: "row" }, ...Object.keys(event.opinions).map((coder) => settle(`As ${coder}`, { opinion_of: coder })), settle("No event", {}), make("button", { type: "button", onclick: () => showForm(event.id) }, "Other …"));
}
function agree(id, body) {
  post("consensus", { label_id: id, ...body }, (item) => {
    openForm = "";
    reopened.delete(id);
    const at = data.compared.findIndex((each) => each.id === id), next = data.compared.slice(at + 1).find((each) => !each.settled);
    data.flags = [...data.flags.filter((flag) => !(flag.coder === "consensus" && flag.label_id === id)), ...(item.settled.label ? [item.settled.label] : [])];
    data.compared[at] = item;
    index();
    layout();
    refresh();
    fillCompared();
    (rowOf(next?.id) ?? byId("compare-shown")).querySelector?.("td:last-child button")?.focus();
  });
}
function showForm(id) {
  openForm = id;
  fillCompared();
  (rowOf(id)?.querySelector("select") ?? byId("compare-shown")).focus();
}
function closeForm() {
  const id = openForm;
  openForm = "";
  fillCompared();
  rowOf(id)?.querySelector("td:last-child button")?.focus();
}
function consensusForm(event) {
  const alarm = make("p", { class: "explain", role: "alert" }), before = event.settled?.label ?? Object.values(event.opinions)[0];
  const form = make("form", { class: "event", onsubmit: (sent) => {
    sent.preventDefault();
    const found = eventOf(form, alarm);
    if (found) agree(event.id, { event: found });
  } }, ...eventFields(before), alarm, make("div", { class: "row wide" }, make("button", { type: "submit" }, "Save the consensus"), make("button", { type: "button", onclick: closeForm }, "Cancel")));
  return form;
}
