// How a flag's probability adds up: from where it starts, by what each fact adds, against the threshold.
const signed = (value) => (value < 0 ? "\u2212" : "+") + Math.abs(value).toFixed(2);
const logOdds = (probability) => { const p = Math.min(Math.max(probability, 0.001), 0.999); return Math.log(p / (1 - p)); };
const weighed = (flag) => flag.base == null || flag.least == null ? [] : flag.evidence.filter((fact) => fact.weight != null);

function addition(flag) {
  const facts = weighed(flag);
  if (!facts.length) return null;
  let at = Math.round(flag.base * 100) / 100;
  const steps = [{ name: "Start, before any fact", from: 0, to: at }];
  for (const fact of facts) steps.push({ name: factName(fact), from: at, to: at += fact.weight });
  const limit = logOdds(flag.least), then = logOdds(flag.raised_least ?? flag.least), isMoved = then !== limit;
  const ends = [0, limit, then, ...steps.map((step) => step.to)];
  const low = Math.min(...ends), span = Math.max(...ends) - low || 1;
  const place = (value) => (value - low) / span * 100;
  const row = ({ name, from, to, says = signed(to - from), kind = to < from ? "less" : "more", line = limit }) => {
    const bar = make("i", { class: kind }), mark = make("b");
    bar.style.left = place(Math.min(from, to)) + "%";
    bar.style.width = Math.abs(place(to) - place(from)) + "%";
    mark.style.left = place(line) + "%";
    return make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "scale", "aria-hidden": "true" }, bar, mark), make("td", {}, says));
  };
  return make("table", { class: "addition " + flag.kind },
    make("caption", {}, "How the probability adds up, in log odds (0 is a probability of 0.5)"),
    make("tbody", {}, ...steps.map(row)),
    make("tfoot", {},
      row({ name: "Sum", from: 0, to: at, kind: "sum", says: `${signed(at)} = probability ${number(flag.probability)}` }),
      isMoved && row({ name: `Threshold of ${flag.kind}s when it was raised`, from: then, to: then, line: then, says: `${signed(then)} = probability ${number(flag.raised_least)}` }),
      row({ name: `Threshold of ${flag.kind}s` + (isMoved ? " at its last change" : ""), from: limit, to: limit, says: `${signed(limit)} = probability ${number(flag.least)}` })));
}

function factName(fact) {
  if (fact.unit === "facts") return `${fact.value} smaller facts, together`;
  const value = fact.unit === "yes or no" ? (fact.value ? "yes" : "no") : number(fact.value) + (fact.unit ? " " + fact.unit : "");
  return `${title(fact.measure)}: ${value}`;
}
