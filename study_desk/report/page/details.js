function showDetails() {
  const box = byId("details"), item = itemOf.get(state.selected);
  byId("previous").disabled = byId("next").disabled = !visible.length;
  if (!item) {
    box.replaceChildren(make("p", { class: "empty" }, flags.length
      ? "Choose a flag in the timeline or the list, or press J, to see what was said, why it was flagged and what would have been better."
      : "There is nothing to show yet."));
    hooks.details("");
    return;
  }
  if (!hooks.details(item)) return;
  box.replaceChildren(...(item.kind === "decision" ? decisionParts(item) : state.blind ? blindParts(item) : flagParts(item)));
}

const timeOf = (item) => clock(item.start, 1) + (item.open ? ", still open" + (data.live ? "" : " at the end") : item.end > item.start ? ` to ${clock(item.end, 1)} (${((item.end - item.start) / 1000).toFixed(1)} s)` : ", an instant");

function flagParts(flag) {
  const severity = make("span", { class: "sev " + flag.kind }, `${flag.severity} ${flag.kind}`);
  return [
    make("p", { class: "name" }, nameOf(flag)),
    make("p", { class: "facts" }, severity, make("span", {}, flag.attributes.map(spoken).join(", ")), make("span", {}, timeOf(flag)), make("span", {}, `probability ${number(flag.probability)}`), flag.known != null && make("span", {}, `raised at ${clock(flag.known, 1)}`)),
    make("div", { class: "split" },
      make("div", {}, make("h3", {}, "Why"), make("p", {}, flag.why), ...flag.evidence.map((fact) => gauge(flag, fact)),
        flag.correction && make("h3", {}, "Better"), flag.correction && make("p", { class: "correction" }, flag.correction)),
      make("div", {}, make("h3", {}, "What was said"), transcript(flag), ...media(flag))),
    judge(flag),
    provenance(flag),
  ].filter(Boolean);
}

function blindParts(flag) {
  return [
    make("p", { class: "name" }, nameOf(flag)),
    make("p", { class: "facts" }, make("span", {}, clock(flag.start, 1)), make("span", {}, "The monitor's label is hidden until you leave blind mode.")),
    make("h3", {}, "What was said"), transcript(flag), ...media(flag), judge(flag),
  ];
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
  if (!near.length) return make("p", { class: "explain" }, "Nobody spoke within 15 s before and 12 s after.");
  const quoted = new Set(item.evidence.map((fact) => fact.utterance).filter(Boolean));
  return make("div", { class: "transcript" }, ...near.map((said) =>
    make("p", { class: quoted.has(said.id) ? "quoted" : "", lang: said.locale || false, dir: "auto" }, make("time", {}, clock(said.start)), make("b", {}, said.who), make("span", {}, said.text || "…"))));
}

function decisionParts(decision) {
  return [
    make("p", { class: "name" }, nameOf(decision)),
    make("p", { class: "facts" }, make("span", { class: "sev decision" }, "recommended action"), make("span", {}, clock(decision.start, 1)), make("span", {}, spoken(decision.outcome))),
    decision.why && make("h3", {}, "Why"), decision.why && make("p", {}, decision.why),
    make("h3", {}, "Candidates"),
    make("table", {}, make("thead", {}, make("tr", {}, ...["Action", "Probability", "Vetoed"].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...decision.candidates.map((c) => make("tr", {}, make("td", {}, c.action), make("td", {}, number(c.probability)), make("td", {}, c.veto ? `${spoken(c.veto)}: ${c.reason}` : "no"))))),
    make("h3", {}, "What was said"), transcript(decision), provenance(decision),
  ].filter(Boolean);
}

function provenance(item) {
  const rows = Object.entries(item.provenance).filter(([, value]) => value !== "" && value != null);
  return make("details", { class: "prov" }, make("summary", {}, "Provenance"),
    make("dl", {}, ...rows.flatMap(([key, value]) => [make("dt", {}, spoken(key)), make("dd", {}, String(value))])));
}
