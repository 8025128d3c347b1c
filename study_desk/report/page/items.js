const data = JSON.parse(byId("data").textContent);
const token = new URL(location).searchParams.get("token");
const LOCKED = "What you chose cannot change any more: now the second after it is shown.";
const OWN = ["action", "reason"];
const SILENT = "The server does not answer. Ask who gave you the link to start it again.";
const isWorked = data.worked.length > 0;
const entries = isWorked ? data.worked : data.scenes;
let place = Math.max(0, entries.findIndex((entry) => !entry.answers));

const send = (path, body) => fetch(path, { method: "POST", headers: { "X-Token": token }, body: JSON.stringify(body) });

function tell(text) {
  byId("notes").textContent = text;
  byId("notes").hidden = !text;
}

async function picture(path, caption) {
  const image = make("img", { alt: caption });
  const answer = await fetch(path, { headers: { "X-Token": token } });
  image.src = URL.createObjectURL(await answer.blob());
  image.onload = () => URL.revokeObjectURL(image.src);
  return make("figure", {}, image, make("figcaption", {}, caption));
}

function question(name, asked, entry) {
  const kind = asked.several ? "checkbox" : "radio";
  const noted = entry.answers ?? entry.choice;
  const given = noted?.[name]?.length || asked.value == null ? noted?.[name] ?? [] : [asked.value];
  const rows = Object.entries(asked.answers).map(([value, text]) =>
    make("label", {}, make("input", { type: kind, name, value, checked: given.includes(value) }), make("span", {}, text)));
  const own = "own" in asked.answers ? OWN.map((part, at) =>
    make("label", {}, make("span", {}, `My ${part}:`),
      make("input", { type: "text", name: `own_${part}`, maxlength: 2000, value: noted?.own?.[at] ?? "" }))) : [];
  if (asked.writes) rows.push(make("textarea", { name, rows: name === "start_s" || name === "category" ? 1 : 2, "aria-label": asked.text }, given[0] ?? ""));
  const opinions = (entry.opinions ?? []).map((each, at) => make("p", { class: "opinion" }, `${at ? "The other" : "One"} says: ` +
    (each[name].map((value) => asked.answers[value]).join("; ") || "none") + (each[name][0] === "own" ? ` ${each.own.join(" ")}` : "")));
  const isLater = entry.later?.includes(name), disabled = entry.choice ? !isLater : false;
  return make("fieldset", { id: `question-${name}`, disabled, hidden: isLater && !entry.choice }, make("legend", {}, asked.text), ...opinions, ...rows, ...own);
}

async function show() {
  tell("");
  const entry = entries[place];
  byId("kicker").textContent = `${data.person}, ${isWorked ? "worked items" : "items"}`;
  byId("title").textContent = entry ? `${isWorked ? "Worked item" : "Item"} ${place + 1} of ${entries.length}` : "There is nothing to do";
  byId("meta").textContent = isWorked ? "Answer these right before the items: they show what is asked." :
    `${entries.filter((each) => each.answers).length} of ${entries.length} answered`;
  byId("previous").disabled = !place;
  byId("next").disabled = place >= entries.length - 1;
  byId("questions").replaceChildren();
  byId("pictures").replaceChildren();
  byId("description").textContent = entry?.description ?? "";
  if (entry) {
    const fields = Object.entries(entry.questions).map(([name, asked]) => question(name, asked, entry));
    byId("questions").append(...fields, make("button", { type: "submit" }, "Save and go on"));
    const paths = entry.pictures ?? [];
    const shown = paths.map((path, at) => [path, paths.length > 5 ? `second ${at}` : `picture ${at + 1}`]);
    if (entry.after) shown.push([entry.after, "the second after"]);
    const figures = await Promise.all(shown.map(([path, caption]) => picture(path, caption))).catch(() => tell(SILENT));
    if (entry === entries[place] && figures) byId("pictures").replaceChildren(...figures);
  }
  document.documentElement.dataset.ready = "yes";
}

byId("questions").addEventListener("submit", async (event) => {
  event.preventDefault();
  const entry = entries[place], form = new FormData(byId("questions"));
  const text = (value) => value.split(/\s+/).join(" ").trim();
  const answers = Object.fromEntries(Object.keys(entry.questions).map((name) => [name, form.getAll(name).map(text)]));
  if (answers.best?.[0] === "own") answers.own = OWN.map((part) => form.get(`own_${part}`));
  const answer = await send(isWorked ? "worked" : "answers", { id: entry.id, answers }).catch(() => null);
  if (!answer?.ok) return tell(answer ? await answer.text() : `Not saved. ${SILENT}`);
  const said = await answer.json();
  if (said.after) {
    for (const name of entry.later) delete answers[name];
    Object.assign(entry, { choice: answers, after: said.after });
    await show();
    return tell(LOCKED);
  }
  entry.answers = { ...answers, ...entry.choice };
  if (isWorked) {
    for (const name of Object.keys(entry.questions)) byId(`question-${name}`).classList.toggle("wrong", said.wrong.includes(name));
    tell(said.wrong.length ? `Not yet: ${said.why}` : `Right: ${said.why}`);
    if (said.wrong.length) return;
    entry.done = true;
    if (entries.every((each) => each.done)) return location.reload();
  }
  const open = entries.findIndex((each) => isWorked ? !each.done : !each.answers);
  place = open < 0 ? place : open;
  await show();
  if (isWorked) tell(`Right: ${said.why}`);
});
byId("previous").addEventListener("click", () => { place -= 1; show(); });
byId("next").addEventListener("click", () => { place += 1; show(); });
show();
