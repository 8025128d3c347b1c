// The page of one or two runs: a list of questions with filters, and one question in full.
const data = JSON.parse(byId("data").textContent);
const list = byId("list"), rowsBox = byId("rows"), names = data.runs.map((run) => run.name), isPair = names.length > 1;
const state = { selected: 0, verdict: "", outcome: "", task: "", words: "" };
let visible = data.questions;
const pressed = (button, on) => button.setAttribute("aria-pressed", String(on));
const layout = () => {};
const rowHeight = () => 3.6 * parseFloat(getComputedStyle(document.documentElement).fontSize);

const optionText = (text) => text === "" ? "None of the above" : text;
function verdictOf(answer) {
  if (!answer) return ["none", "not in this run"];
  if (!answer.answered) return ["none", spoken(answer.outcome)];
  if (answer.score == null) return ["none", "written"];
  return answer.score === 1 ? ["right", "right"] : answer.score > 0 ? ["partly", `${Math.round(100 * answer.score)} % right`] : ["wrong", "wrong"];
}
const badge = (answer, before = "") => { const [kind, text] = verdictOf(answer); return make("span", { class: "sev " + kind }, before + text); };
const isRight = (answer) => answer?.score === 1, isAsked = (answer) => answer && answer.outcome !== "missing";
const isAlone = (run) => (question) => !question.common && isAsked(question.answers[run]);

const VERDICTS = [["", "All", () => true], ["right", isPair ? "Right in both" : "Right", (q) => q.answers.every(isRight)], ["wrong", isPair ? "Not right in both" : "Not right", (q) => (q.common || !isPair) && q.answers.every((each) => each?.score != null && !isRight(each))]]
  .concat(isPair ? [["differs", "Differs between the runs", (q) => q.differs], ["first", "Right in run 1 alone", ({ common, answers: [a, b] }) => common && isRight(a) && !isRight(b)], ["second", "Right in run 2 alone", ({ common, answers: [a, b] }) => common && !isRight(a) && isRight(b)],
    ["only-first", "Asked in run 1 alone", isAlone(0)], ["only-second", "Asked in run 2 alone", isAlone(1)]] : []);

const haystacks = new Map();
function haystack(question) {
  if (!haystacks.has(question)) {
    const answers = question.answers.filter(Boolean);
    haystacks.set(question, [question.item, ...Object.values(question.options), ...question.references, ...Object.values(question.by),
      ...answers.flatMap((each) => [each.scene, each.question, each.text, each.reason, each.explanation, ...(each.speech ?? []).map((said) => said.text), ...each.requests.flatMap((request) => [request.prompt, request.reply])])].join("\n").toLowerCase());
  }
  return haystacks.get(question);
}
const isShown = (question) => VERDICTS.find(([name]) => name === state.verdict)[2](question)
  && (!state.outcome || question.answers.some((each) => each?.outcome === state.outcome))
  && (!state.task || question.task === state.task) && (!state.words || haystack(question).includes(state.words));

function fillList() {
  const tall = rowHeight();
  rowsBox.style.height = visible.length * tall + "px";
  const first = Math.max(0, Math.floor(list.scrollTop / tall) - 6), last = Math.min(visible.length, Math.ceil((list.scrollTop + list.clientHeight) / tall) + 6);
  const nodes = visible.slice(first, last).map((question, i) => {
    const number = data.questions.indexOf(question), node = make("div", {
      role: "option", id: "row-" + number, "aria-selected": String(number === state.selected), "aria-posinset": first + i + 1, "aria-setsize": visible.length, onclick: () => { select(number); list.focus(); },
    }, make("span", { class: "when" }, String(number + 1)), make("span", { class: "what" }, question.item), make("span", { class: "mark" }, ...question.answers.map((each, run) => badge(each, isPair ? run + 1 + ": " : ""))), make("span", { class: "where" }, title(question.task)));
    node.style.top = (first + i) * tall + "px";
    return node;
  });
  rowsBox.replaceChildren(...nodes);
  if (byId("row-" + state.selected)) list.setAttribute("aria-activedescendant", "row-" + state.selected);
  else list.removeAttribute("aria-activedescendant");
  byId("list-empty").hidden = visible.length > 0;
  list.hidden = visible.length === 0;
}

function refresh() {
  visible = data.questions.filter(isShown);
  byId("count").textContent = visible.length === data.questions.length ? `${visible.length} in all` : `${visible.length} of ${data.questions.length}`;
  if (visible.length && !visible.includes(data.questions[state.selected])) state.selected = data.questions.indexOf(visible[0]);
  list.scrollTop = 0;
  select(state.selected);
}

function select(number) {
  state.selected = number;
  const at = visible.indexOf(data.questions[number]), tall = rowHeight();
  if (at >= 0 && at * tall < list.scrollTop) list.scrollTop = at * tall;
  else if (at >= 0 && (at + 1) * tall > list.scrollTop + list.clientHeight) list.scrollTop = (at + 1) * tall - list.clientHeight;
  fillList();
  byId("previous").disabled = byId("next").disabled = !visible.length;
  byId("details").replaceChildren(...visible.length ? questionParts(data.questions[number]) : []);
}
function step(by) {
  const at = visible.indexOf(data.questions[state.selected]);
  if (!visible.length) return;
  select(data.questions.indexOf(visible[Math.min(visible.length - 1, Math.max(0, at + by))]));
  const card = byId("details").parentElement;
  if (card.getBoundingClientRect().top < 0) card.scrollIntoView();
}

const heading = (text) => make("h3", {}, text);
const paragraph = (text) => make("p", { class: "said", dir: "auto" }, text);
const percent = (value) => value == null ? "" : Math.round(100 * value) + " %";

function questionParts(question) {
  const answers = question.answers.filter(Boolean), facts = [title(question.task), ...Object.entries(question.by).filter(([, value]) => value).map(([name, value]) => `${spoken(name)}: ${value}`)];
  // A model alone is asked all in one prompt: where the robot has the question by itself, it stands above the options.
  const asked = (question.answers.find((each, run) => each?.question && data.runs[run].is_robot) ?? answers.find((each) => each.question))?.question;
  const scene = answers.find((each) => each.scene && !asked?.includes(each.scene))?.scene;
  const spoke = answers.find((each) => each.speech?.length)?.speech;
  return [
    make("p", { class: "name" }, question.item),
    make("p", { class: "facts" }, ...facts.map((fact) => make("span", {}, fact))),
    ...pictureParts(answers),
    spoke && heading("What was said"),
    spoke && make("div", { class: "transcript" }, ...spoke.map((said) => make("p", { lang: said.locale || false, dir: "auto" }, make("time", {}, elapsed(said.start)), make("b", {}, title(said.who)), make("span", {}, said.text)))),
    scene && heading("Scene"), scene && paragraph(scene),
    asked && heading("Question"), asked && paragraph(asked),
    ...rightParts(question),
    make("div", { class: isPair ? "split" : "" }, ...question.answers.map((each, run) => answerParts(each, run, each && each.question !== asked && !each.requests.some((request) => request.prompt.includes(each.question))))),
  ].filter(Boolean);
}

// The pictures of the first run that has any: the second shows the same episode, perhaps in another form.
function pictureParts(answers) {
  const shown = answers.find((each) => each.pictures?.length);
  if (!shown) return [];
  const all = shown.frames === shown.pictures.length ? "" : ` (${shown.pictures.length} of ${shown.frames})`;
  return [heading("Pictures" + all), make("div", { class: "frames" }, ...shown.pictures.map((digest, i) => make("figure", {}, make("img", { src: data.pictures[digest], alt: `Picture ${i + 1} of ${shown.pictures.length}`, loading: "lazy" }))))];
}

function rightParts(question) {
  const first = question.answers.find(Boolean), places = first.offered.length ? first.offered : Object.keys(question.options);
  const cell = (answer, place) => {
    if (!answer) return make("td", {}, "–");
    const at = answer.offered.indexOf(Number(place)), chance = percent(answer.probabilities?.[at]);
    return make("td", {}, answer.chosen.includes(Number(place)) ? make("b", {}, "chosen ") : "", chance);
  };
  const references = [...question.references.map((text) => ["reference", text]), ...Object.entries(question.evidence).flatMap(([kind, texts]) => texts.map((text) => [`${kind} evidence`, text]))];
  return [
    places.length > 0 && heading("Options"),
    places.length > 0 && make("table", { class: "options" }, make("thead", {}, make("tr", {}, ...["Option", "Right answer", ...isPair ? names.map((_, i) => `Run ${i + 1}`) : ["Chosen"]].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...places.map((place) => make("tr", { class: question.right.includes(Number(place)) ? "right-answer" : "" }, make("td", { dir: "auto" }, optionText(question.options[place] ?? `option ${place}`)), make("td", {}, question.right.includes(Number(place)) ? "✓ right" : ""), ...question.answers.map((each) => cell(each, place)))))),
    references.length > 0 && heading("Right answers, as written"),
    references.length > 0 && make("ul", {}, ...references.map(([kind, text]) => make("li", { dir: "auto" }, `${title(kind)}: ${text}`))),
  ].filter(Boolean);
}

function answerParts(answer, run, ownQuestion) {
  const name = names[run];
  if (!answer) return make("section", { class: "answer" }, heading(`Run ${run + 1}: ${name}`), make("p", { class: "explain" }, "This run does not hold the question."));
  const grades = Object.entries(answer.grades ?? {}).map(([kind, value]) => `${spoken(kind)} ${value} of 5`).join(", ");
  const vetoed = answer.candidates?.filter((each) => each.veto) ?? [];
  return make("section", { class: "answer" }, heading(isPair ? `Run ${run + 1}: ${name}` : "Answer"),
    make("p", { class: "facts" }, badge(answer), make("span", {}, spoken(answer.outcome)), answer.took_s != null && make("span", {}, `${answer.took_s.toFixed(1)} s`), answer.by_text && make("span", {}, "option read from the reply's words"), grades && make("span", {}, grades)),
    answer.reason && paragraph(answer.reason),
    ownQuestion && answer.question && heading("Question"), ownQuestion && answer.question && make("pre", { tabindex: 0, dir: "auto" }, answer.question),
    answer.text && heading("Reply"), answer.text && make("pre", { tabindex: 0, dir: "auto" }, answer.text),
    answer.explanation && heading("Steps"), answer.explanation && paragraph(answer.explanation),
    vetoed.length > 0 && make("table", {}, make("thead", {}, make("tr", {}, ...["Vetoed", "Why"].map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, ...vetoed.map((each) => make("tr", {}, make("td", {}, optionText(each.action)), make("td", {}, `${title(each.veto)}: ${each.reason}`))))),
    answer.requests.length > 0 && heading(`Requests to the model (${answer.requests.length})`), ...answer.requests.map(requestParts),
    make("details", { class: "prov" }, make("summary", {}, "Provenance"), make("dl", {}, ...Object.entries(answer.provenance).flatMap(([key, value]) => [make("dt", {}, spoken(key)), make("dd", {}, String(value))]))));
}

function requestParts(request) {
  const tokens = request.prompt_tokens + request.completion_tokens;
  const facts = [spoken(request.outcome), request.cached ? "from the cache" : tokens ? `${tokens} tokens` : ""].filter(Boolean).join(", ");
  const chances = request.options.map((text, i) => `${percent(request.probabilities[i]).padStart(5)}  ${optionText(text)}`).join("\n");
  return make("details", { class: "request" }, make("summary", {}, title(request.step), make("span", {}, ` · ${facts}`)),
    make("pre", { tabindex: 0, dir: "auto" }, request.prompt || "The prompt is left out, to keep this page small."),
    request.reply && heading("Reply"), request.reply && make("pre", { tabindex: 0, dir: "auto" }, request.reply),
    chances && heading("Probabilities"), chances && make("pre", { tabindex: 0, dir: "auto" }, chances),
    request.reason && paragraph(request.reason));
}

function fillHead() {
  byId("suite").textContent = data.suite;
  byId("meta").replaceChildren(...names.flatMap((name, run) => [run ? " · " : "", make("bdi", {}, isPair ? `Run ${run + 1}: ${name}` : name), ` (${data.runs[run].kind}; setting ${data.runs[run].setting})`]));
  byId("footer").textContent = `Made by Tactful ${data.version}. It holds right answers and, where the data has them, people's words and pictures: mind the data's licence before you share it.`;
  byId("notes").hidden = !data.notes.length;
  byId("notes").replaceChildren(...data.notes.map((note) => make("p", {}, note)));
  const tile = (name, value, extra) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value), extra ? make("small", {}, extra) : ""));
  const counted = isPair ? data.questions.filter((question) => question.common) : data.questions;
  const scored = counted.filter((question) => question.answers.some((each) => each?.score != null)).length;
  byId("tiles").replaceChildren(tile(isPair ? "Asked in both" : "Questions", counted.length), ...names.flatMap((name, run) => {
    const answers = counted.map((question) => question.answers[run]), suffix = isPair ? ` in run ${run + 1}` : "", alone = data.questions.filter(isAlone(run)).length;
    return [tile("Wholly right" + suffix, answers.filter(isRight).length, scored ? `of ${scored}` : ""), tile("Not answered" + suffix, answers.filter((each) => !each.answered).length),
      isPair && alone && tile(`Asked in run ${run + 1} alone`, alone)].filter(Boolean);
  }), ...isPair ? [tile("Choices differ", counted.filter((question) => question.differs).length, `of ${scored}`)] : []);
  const choice = (box, pairs) => {
    byId(box).replaceChildren(...pairs.map(([value, label]) => make("option", { value }, label)));
    byId(box).addEventListener("change", (event) => { state[box] = event.target.value; refresh(); });
  };
  const withCounts = (values) => [...values.reduce((counts, value) => counts.set(value, (counts.get(value) ?? 0) + 1), new Map())].map(([value, count]) => [value, `${title(value)} (${count})`]);
  choice("verdict", VERDICTS);
  choice("outcome", [["", "All"], ...withCounts(data.questions.flatMap((question) => question.answers.filter(Boolean).map((each) => each.outcome)))]);
  choice("task", [["", "All"], ...withCounts(data.questions.map((question) => question.task))]);
  byId("words").addEventListener("input", (event) => { state.words = event.target.value.trim().toLowerCase(); refresh(); });
}

list.addEventListener("scroll", fillList, { passive: true });
list.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -1e9, End: 1e9 }[event.key];
  if (by) { event.preventDefault(); step(by); }
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
  const does = { j: () => step(1), k: () => step(-1), "?": () => byId("keys").showModal(), "/": () => byId("words").focus() }[event.key.toLowerCase()];
  if (does) { event.preventDefault(); does(); }
});

fillHead();
setDark(window.matchMedia("(prefers-color-scheme: dark)").matches);
refresh();
document.documentElement.dataset.ready = "yes";
