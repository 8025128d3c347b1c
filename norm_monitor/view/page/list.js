const list = byId("list"), rowsBox = byId("rows");
const MARKS = { accept: "✓ accepted", reject: "✗ rejected", relabel: "↻ relabelled" };

const actionOf = (text) => text.trim() || "None of the above";
function nameOf(item) {
  if (item.kind === "decision") return item.answered ? actionOf(item.chosen) : "No action (" + spoken(item.outcome) + ")";
  return title(item.cue || item.attributes[0]);
}
function placeOf(item) {
  if (item.kind === "decision") return `one of ${item.candidates.length}` + (item.candidates.some((each) => each.veto) ? `, ${item.candidates.filter((each) => each.veto).length} vetoed` : "");
  return item.attributes.map(spoken).join(", ");
}

// A competence has no severity worth the word, and a coder need not give one.
const kindOf = (item) => item.kind === "error" && item.severity ? `${item.severity} error` : item.kind;

function fillList() {
  const tall = 3.6 * rem;
  rowsBox.style.height = visible.length * tall + "px";
  const first = Math.max(0, Math.floor(list.scrollTop / tall) - 6);
  const last = Math.min(visible.length, Math.ceil((list.scrollTop + list.clientHeight) / tall) + 6);
  const nodes = [];
  for (let i = first; i < last; i++) {
    const item = visible[i], review = state.reviews.get(item.id);
    const node = make("div", {
      role: "option", id: "row-" + item.id, class: hooks.isLater(item) ? "later" : "", "aria-selected": String(item.id === state.selected), "aria-posinset": i + 1, "aria-setsize": visible.length,
      onclick: () => { select(item.id); list.focus(); },
    },
    make("span", { class: "when" }, clock(item.start)),
    make("span", { class: "what" }, nameOf(item)),
    make("span", { class: "mark" }, make("span", { class: "sev " + item.kind }, kindOf(item)), review && make("span", { class: "verdict" }, MARKS[review.verdict])),
    make("span", { class: "where" }, placeOf(item)));
    node.style.top = i * tall + "px";
    nodes.push(node);
  }
  rowsBox.replaceChildren(...nodes);
  const chosen = visible.findIndex((item) => item.id === state.selected);
  if (chosen >= first && chosen < last) list.setAttribute("aria-activedescendant", "row-" + state.selected);
  else list.removeAttribute("aria-activedescendant");
  const empty = byId("list-empty");
  empty.hidden = visible.length > 0;
  list.hidden = visible.length === 0;
  empty.textContent = data.live && !items.length ? "Nothing is flagged so far." : items.length
    ? "No flag fits these filters. Widen them to see all " + flags.length + "."
    : hooks.nothing() || "Nothing was flagged in this session. Either nothing happened that a cue measures, or the monitor did not run." + (data.notes.length ? " See the notes above." : "");
}

// What is read stays where it is while rows come and go; at its end, the list of a running graph goes along.
function keepRows(change) {
  const tall = 3.6 * rem, top = list.scrollTop, first = Math.floor(top / tall);
  const isAtEnd = top + list.clientHeight >= list.scrollHeight - 2, before = visible.slice(first);
  change();
  rowsBox.style.height = visible.length * tall + "px";
  list.hidden = visible.length === 0;
  if (isAtEnd && hooks.follows()) { list.scrollTop = list.scrollHeight; return; }
  if (!top) return;
  const places = new Map(visible.map((item, place) => [item.id, place]));
  const stays = before.findIndex((item) => places.has(item.id));
  list.scrollTop = stays < 0 ? 0 : places.get(before[stays].id) * tall + (stays ? 0 : top - first * tall);
}

function refresh() {
  keepRows(() => { visible = items.filter(shown); });
  const there = visible.filter((item) => item.kind !== "decision").length;
  byId("count").textContent = there === flags.length ? flags.length + " in all" : there + " of " + flags.length;
  showProgress();
  fillList();
  draw();
  showDetails();
}

function select(id, { scroll = true } = {}) {
  state.selected = id;
  const at = visible.findIndex((item) => item.id === id), tall = 3.6 * rem;
  if (scroll && at >= 0) {
    if (at * tall < list.scrollTop) list.scrollTop = at * tall;
    else if ((at + 1) * tall > list.scrollTop + list.clientHeight) list.scrollTop = (at + 1) * tall - list.clientHeight;
  }
  reveal(itemOf.get(id));
  hooks.selected(itemOf.get(id));
  fillList();
  draw();
  showDetails();
}
// For keys, which leave the page where it is: the chosen row, and above all its details, come into view.
function show(id) {
  select(id);
  byId("row-" + id)?.scrollIntoView({ block: "nearest" });
  const card = byId("details").parentElement, { top, bottom } = card.getBoundingClientRect();
  const covered = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
  card.scrollIntoView({ block: top < covered || bottom - top > innerHeight - covered ? "start" : "nearest" });
}
function step(by) {
  if (!visible.length) return;
  const at = visible.findIndex((item) => item.id === state.selected);
  // From a flag that the filters hide, or from the moment shown, on to the nearest in the list.
  const start = itemOf.get(state.selected)?.start ?? hooks.stepFrom() ?? 0;
  const later = visible.findIndex((v) => v.start >= start);
  const from = at >= 0 ? at + by : by < 0 ? visible.findLastIndex((v) => v.start <= start) : later < 0 ? visible.length - 1 : later;
  show(visible[Math.min(visible.length - 1, Math.max(0, from))].id);
}
list.addEventListener("scroll", fillList, { passive: true });
list.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -1e9, End: 1e9 }[event.key];
  if (!by) return;
  event.preventDefault();
  const at = visible.findIndex((item) => item.id === state.selected);
  show(visible[Math.min(visible.length - 1, Math.max(0, at + by))].id);
});
