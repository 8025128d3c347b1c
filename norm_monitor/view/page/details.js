function showDetails() {
  const box = byId("details"), item = itemOf.get(state.selected);
  byId("previous").disabled = byId("next").disabled = !visible.length;
  if (!item) {
    box.replaceChildren(make("p", { class: "empty" }, hooks.withdrawn(state.selected) || (flags.length
      ? "Choose a flag in the timeline or the list, or press J, to see what was said, why it was flagged and what would have been better."
      : "There is nothing to show yet.")));
    hooks.details("");
    return;
  }
  if (!hooks.details(item)) return;
  const parts = item.kind === "decision" ? decisionParts(item) : flagParts(item);
  keepForm(item.id, () => box.replaceChildren(...parts));
}

// A form stays open, with what was typed, while its flag changes.
function keepForm(id, replace) {
  const form = byId("relabel")?.firstChild, focused = form?.contains(document.activeElement) && document.activeElement;
  replace();
  if (form?.dataset.flag !== id || !byId("relabel")) return;
  byId("relabel").append(form);
  if (focused) focused.focus({ preventScroll: true });
}

const timeOf = (item) => clock(item.start, 1) + (item.open ? ", still open" + (data.live ? "" : " at the end") : item.end > item.start ? ` to ${clock(item.end, 1)} (${secondsBetween(item.start, item.end)} s)` : ", an instant");

function flaggedAt(flag) {
  const late = secondsBetween(flag.end, flag.known);
  return `flagged at ${clock(flag.known, 1)}` + (flag.open || late < 0 ? ", while it went on" : late > 0 ? `, ${late} s after it ended` : "");
}

function flagParts(flag) {
  const severity = make("span", { class: "sev " + flag.kind }, kindOf(flag));
  return [
    make("p", { class: "name" }, nameOf(flag)),
    make("p", { class: "facts" }, severity, make("span", {}, flag.attributes.map(spoken).join(", ")), make("span", {}, timeOf(flag)), make("span", {}, `probability ${number(flag.probability)}`), flag.known != null && make("span", {}, flaggedAt(flag))),
    make("div", { class: "split" },
      make("div", {}, make("h3", {}, "Why"), make("p", {}, flag.why), ...flag.evidence.filter((fact) => !weighed(flag).includes(fact)).map((fact) => gauge(flag, fact)),
        flag.correction && make("h3", {}, "Better"), flag.correction && make("p", { class: "correction" }, flag.correction)),
      make("div", {}, make("h3", {}, "What was said"), transcript(flag))),
    addition(flag),
    judge(flag),
    provenance(flag),
  ].filter(Boolean);
}

function gauge(flag, fact) {
  if (fact.value == null) return null;
  const unit = fact.unit ? " " + fact.unit : "";
  const value = fact.unit === "yes or no" ? (fact.value ? "yes" : "no") : number(fact.value) + unit;
  const head = make("p", { class: "said" }, make("span", {}, title(fact.measure)), make("span", {}, make("b", {}, value)));
  const adds = fact.weight == null ? null : make("small", {}, `adds ${number(fact.weight)} to the log odds of this ${flag.kind}`);
  if (fact.threshold == null) return make("div", { class: "gauge " + flag.kind }, head, adds);
  const most = Math.max(fact.value, fact.threshold) * 1.15 || 1;
  const bar = make("i"), limit = make("b");
  bar.style.width = Math.max(0, fact.value) / most * 100 + "%";
  limit.style.left = Math.max(0, fact.threshold) / most * 100 + "%";
  const side = fact.value >= fact.threshold ? "at or above" : "below";
  return make("div", { class: "gauge " + flag.kind }, head, make("div", { class: "bar", "aria-hidden": "true" }, bar, limit),
    make("small", {}, `${side} the threshold of ${number(fact.threshold)}${unit}`), adds && ". ", adds);
}

function transcript(item) {
  const near = between(data.speech, item.start - 15000, item.end + 12000, 0 + Math.max(longest.robot, longest.user));
  if (!near.length) return make("p", { class: "explain" }, data.state?.speech_missing ?? "Nobody spoke within 15 s before and 12 s after.");
  const quoted = new Set(item.evidence.map((fact) => fact.utterance).filter(Boolean));
  return make("div", { class: "transcript" }, ...near.map((said) =>
    make("p", { class: quoted.has(said.id) ? "quoted" : "", lang: said.locale || false, dir: "auto" }, make("time", {}, clock(said.start)), make("b", {}, whoSaid(said)), make("span", {}, said.text || "…"))));
}

const VETOES = { singleton: "another does it", off_vantage: "not from here", hard_rule: "hard rule", house_rule: "house rule of this situation", precondition: "precondition" };
function decisionParts(decision) {
  const candidate = (each, place) => make("tr", { class: place === decision.choice ? "chosen" : "" }, make("td", {}, actionOf(each.action), place === decision.choice && " ✓ recommended"), make("td", {}, each.veto ? "" : number(each.probability)), make("td", {}, each.veto ? `${VETOES[each.veto] ?? spoken(each.veto)}: ${each.reason}` : "no"));
  const asker = flags.find((flag) => flag.id === decision.asker);
  return [
    make("p", { class: "name" }, nameOf(decision)),
    make("p", { class: "facts" }, make("span", { class: "sev decision" }, decision.answered ? "recommended action" : "no recommendation"), make("span", {}, clock(decision.start, 1)), make("span", {}, spoken(decision.outcome))),
    make("h3", {}, "Request"), decision.question && make("p", {}, decision.question), make("p", {}, decision.situation || "No situation was stated."),
    asker && make("p", {}, "A repair was asked for by the flag ", make("button", { type: "button", onclick: () => show(asker.id) }, `${nameOf(asker)}, ${clock(asker.start)}`)),
    decision.why && make("h3", {}, "Why"), decision.why && make("p", {}, decision.why),
    make("h3", {}, "Candidates"),
    decision.candidates.length ? make("table", {}, make("thead", {}, make("tr", {}, ...["Action", "Probability", "Vetoed"].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...decision.candidates.map(candidate))) : make("p", { class: "explain" }, "There were none."),
    make("h3", {}, "What was said"), transcript(decision), provenance(decision),
  ].filter(Boolean);
}

function provenance(item) {
  const rows = Object.entries(item.provenance).filter(([, value]) => value !== "" && value != null);
  return make("details", { class: "prov" }, make("summary", {}, "Provenance"),
    make("dl", {}, ...rows.flatMap(([key, value]) => [make("dt", {}, spoken(key)), make("dd", {}, String(value))])));
}
