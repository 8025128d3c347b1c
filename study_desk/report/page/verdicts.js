const STORE = "tactful-review-" + data.head, REVIEWER = STORE + "-reviewer";

hooks.reviewsOfOthers = (flag) => data.server || state.blind ? [] : data.reviews.filter((other) => other.event_id === flag.id);
const judge = verdictParts;

function give(flag, verdict, label = {}) {
  const review = { event_id: flag.id, reviewer: state.reviewer, verdict, polarity: null, attributes: [], severity: null, note: "", blind: state.blind, ...label };
  state.reviews.set(flag.id, review);
  keep(review);
  refresh();
  return true;
}
function takeBack(flag) {
  if (data.server) { byId("saved").textContent = "The log keeps every verdict; give another and it replaces this one."; return; }
  state.reviews.delete(flag.id);
  keep();
  refresh();
}

async function keep(review) {
  if (data.server && review) {
    byId("saved").textContent = "Saving …";
    try {
      const answer = await fetch("reviews", { method: "POST", headers: { "Content-Type": "application/json", "X-Token": data.server.token }, body: JSON.stringify(review) });
      byId("saved").textContent = answer.ok ? "Saved in the log." : "Not saved: " + await answer.text();
    } catch (error) { byId("saved").textContent = "Not saved: the review server does not answer. Export your verdicts."; }
    return;
  }
  try { localStorage.setItem(STORE, JSON.stringify([...state.reviews.values()])); byId("saved").textContent = "Kept in this browser until you export it."; }
  catch (error) { byId("saved").textContent = "This browser keeps nothing: export before you close the page."; }
}
function keepReviewer() {
  try { localStorage.setItem(REVIEWER, state.reviewer); }
  catch (error) { byId("saved").textContent = "This browser keeps nothing: give your name again when you come back."; }
}
function recall() {
  // A report that lies about as a file begins anew for whoever opens it; others' verdicts are shown, not taken over.
  if (data.server) {
    for (const review of data.reviews) state.reviews.set(review.event_id, review);
    return;
  }
  try {
    nameReviewer(localStorage.getItem(REVIEWER) ?? state.reviewer);
    for (const review of JSON.parse(localStorage.getItem(STORE) ?? "[]")) state.reviews.set(review.event_id, review);
  } catch (error) { byId("saved").textContent = "Earlier verdicts in this browser could not be read."; }
}

// Who gives the verdicts from now on; those given before stay with who gave them.
function nameReviewer(reviewer) {
  state.reviewer = reviewer;
  byId("reviewer").value = reviewer;
}

function save(name, text, type) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
}
const fileName = (ending) => `${(data.info.session || "session").replace(/[^\p{L}\p{N}_-]+/gu, "_")}-${(state.reviewer || "reviews").replace(/[^\p{L}\p{N}_-]+/gu, "_")}.${ending}`;
function exportJson() {
  save(fileName("json"), JSON.stringify({ tactful_reviews: 1, study: data.info.study, session: data.info.session, head: data.head, reviews: [...state.reviews.values()] }, null, 1), "application/json");
}

// A tier for each polarity and attribute, as the command line writes and reads them; overlaps go to a second tier.
function exportEaf() {
  const tiers = new Map();
  const several = new Set([...state.reviews.values()].map((review) => review.reviewer)).size > 1;
  for (const flag of flags) {
    const review = state.reviews.get(flag.id);
    if (!review) continue;
    const relabelled = review.verdict === "relabel";
    const names = review.verdict === "reject" ? ["rejected"] : (relabelled ? review.attributes : flag.attributes).map((a) => `${relabelled ? review.polarity : flag.polarity} ${a}`);
    for (const name of names) {
      const tier = several ? `${review.reviewer}: ${name}` : name;
      tiers.set(tier, [...(tiers.get(tier) ?? []), { flag, review, name }]);
    }
  }
  const xml = (text) => String(text).replace(/[\u0000-\u001f]+/g, " ").replace(/[<>&"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const order = [], parts = [];
  let slots = 0, ids = 0;
  for (const [name, entries] of tiers) {
    const lanes = [];
    for (const entry of entries) {
      const start = Math.round(entry.flag.start + data.offset), end = Math.max(start + 1, Math.round(entry.flag.end + data.offset));
      let lane = lanes.find((each) => each.at(-1).end <= start);
      if (!lane) lanes.push(lane = []);
      lane.push({ ...entry, start, end, instant: Math.round(entry.flag.end + data.offset) <= start });
    }
    lanes.forEach((lane, index) => {
      const tier = index ? `${name} +${index + 1}` : name;
      const rows = lane.map((each) => {
        order.push(`<TIME_SLOT TIME_SLOT_ID="ts${++slots}" TIME_VALUE="${each.start}"/>`, `<TIME_SLOT TIME_SLOT_ID="ts${++slots}" TIME_VALUE="${each.end}"/>`);
        const severity = each.review.severity ?? each.flag.severity;
        const marks = (each.instant ? " instant" : "") + (each.review.blind ? " blind" : "");
        const note = `severity=${severity} event=${each.flag.id} verdict=${each.review.verdict}${marks} | ${each.review.note}`;
        return { id: `a${++ids}`, first: slots - 1, value: each.flag.cue || each.name, note };
      });
      parts.push(`<TIER LINGUISTIC_TYPE_REF="label" TIER_ID="${xml(tier)}" ANNOTATOR="${xml(lane[0].review.reviewer)}">` + rows.map((r) => `<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="${r.id}" TIME_SLOT_REF1="ts${r.first}" TIME_SLOT_REF2="ts${r.first + 1}"><ANNOTATION_VALUE>${xml(r.value)}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>`).join("") + "</TIER>",
        `<TIER LINGUISTIC_TYPE_REF="note" PARENT_REF="${xml(tier)}" TIER_ID="${xml(tier)} notes">` + rows.map((r) => `<ANNOTATION><REF_ANNOTATION ANNOTATION_ID="a${++ids}" ANNOTATION_REF="${r.id}"><ANNOTATION_VALUE>${xml(r.note)}</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION>`).join("") + "</TIER>");
    });
  }
  save(fileName("eaf"), `<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="${xml(state.reviewer)}" DATE="${new Date().toISOString()}" FORMAT="3.0" VERSION="3.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd">
<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">${data.info.media.map((name) => `<MEDIA_DESCRIPTOR MEDIA_URL="${xml(name)}" MIME_TYPE="unknown"/>`).join("")}<PROPERTY NAME="tactful:origin_ns">${data.origin_ns}</PROPERTY><PROPERTY NAME="tactful:session">${xml(data.info.session)}</PROPERTY></HEADER>
<TIME_ORDER>${order.join("")}</TIME_ORDER>
${parts.join("\n")}
<LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="label" TIME_ALIGNABLE="true" GRAPHIC_REFERENCES="false"/><LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="note" TIME_ALIGNABLE="false" GRAPHIC_REFERENCES="false" CONSTRAINTS="Symbolic_Association"/>
<CONSTRAINT STEREOTYPE="Symbolic_Association" DESCRIPTION="1-1 association with a parent annotation"/>
</ANNOTATION_DOCUMENT>
`, "text/xml");
}

function showProgress() {
  const done = flags.filter((flag) => state.reviews.has(flag.id)).length;
  byId("progress").textContent = flags.length ? `${done} of ${flags.length} reviewed` : "nothing to review";
  const fallen = flags.filter((flag) => !stands(flag)).length;
  byId("whatif-sum").textContent = fallen ? `${flags.length - fallen} of ${flags.length} flags would remain` : "";
}
