// The verdict on a flag, as a person gives it.
function verdictParts(flag) {
  const review = state.reviews.get(flag.id);
  const button = (verdict, label) => make("button", { type: "button", "data-verdict": verdict, "aria-pressed": String(review?.verdict === verdict), title: label, onclick: () => verdict === "relabel" ? openRelabel(flag) : judgeAs(flag, verdict) }, label);
  const judged = review ? `${MARKS[review.verdict]} by ${review.coder}` + (review.verdict === "relabel" ? `: ${review.polarity}, ${review.attributes.map(spoken).join(", ")}` : "") : "";
  return make("div", {}, make("div", { class: "judge" }, button("accept", "Accept"), button("reject", "Reject"), button("relabel", "Relabel"), make("span", { class: "explain" }, judged)), make("div", { id: "relabel" }));
}

// Give a verdict, and close the form once it is taken. The first one asks who judges.
function judgeAs(flag, verdict, label) {
  const judging = async () => { if (await give(flag, verdict, label)) formOf(flag)?.remove(); };
  if (state.coder) { judging(); return; }
  const before = formOf(flag);
  const name = make("input", { name: "name", maxlength: 40, autocomplete: "off", required: true, "aria-label": "Your name or pseudonym" });
  const form = make("form", { "data-flag": flag.id, onsubmit: (event) => {
    event.preventDefault();
    if (!name.value.trim()) return;
    nameCoder(name.value.trim());
    keepCoder();
    byId("relabel").replaceChildren(...[before].filter(Boolean));
    judging();
  } },
  make("fieldset", { class: "relabel" }, make("legend", {}, "Who judges? Your name or pseudonym goes into the log"), name, make("div", { class: "row" }, make("button", { type: "submit" }, "Save the verdict"))));
  byId("relabel").replaceChildren(form);
  name.focus();
}
const formOf = (flag) => [...byId("relabel")?.children ?? []].find((form) => form.dataset.flag === flag.id);
function openRelabel(flag) {
  const review = state.reviews.get(flag.id), before = review?.verdict === "relabel" ? review : flag;
  const choice = (name, options, chosen) => make("select", { name }, ...options.map((option) => make("option", { value: option, selected: option === chosen }, option)));
  const boxes = data.all_attributes.map((attribute) => make("label", {}, make("input", { type: "checkbox", name: "attribute", value: attribute, checked: before.attributes.includes(attribute) }), " " + title(attribute)));
  const note = make("input", { name: "note", maxlength: 500, "aria-label": "Note", placeholder: "note, if any", value: review?.note ?? "" });
  const alarm = make("p", { class: "explain", role: "alert" });
  const form = make("form", { "data-flag": flag.id, onsubmit: (event) => {
    event.preventDefault();
    const attributes = [...form.querySelectorAll("[name=attribute]:checked")].map((box) => box.value);
    if (!attributes.length) { alarm.textContent = "Choose at least one attribute, or reject the flag."; return; }
    const label = { polarity: form.elements.polarity.value, attributes, note: note.value };
    judgeAs(flag, "relabel", label);
  } },
  make("fieldset", { class: "relabel" }, make("legend", {}, "What it is"), make("div", { class: "boxes" }, ...boxes),
    make("div", { class: "selects" }, make("label", {}, "Polarity ", choice("polarity", ["error", "competence"], before.polarity))),
    note, alarm, make("div", { class: "row" }, make("button", { type: "submit" }, "Save the label"), make("button", { type: "button", onclick: () => byId("relabel").replaceChildren() }, "Cancel"))));
  byId("relabel").replaceChildren(form);
  form.querySelector("input").focus();
}

// Escape closes a form, and leaves the focus where it was opened.
document.addEventListener("keydown", (event) => {
  const holder = byId("relabel");
  if (event.key !== "Escape" || !holder?.firstChild) return;
  const inside = holder.contains(document.activeElement);
  holder.replaceChildren();
  if (inside) holder.parentElement.querySelector("[data-verdict]")?.focus();
});
