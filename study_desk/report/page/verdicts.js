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

function showProgress() {
  const done = flags.filter((flag) => state.reviews.has(flag.id)).length;
  byId("progress").textContent = flags.length ? `${done} of ${flags.length} reviewed` : "nothing to review";
  const fallen = flags.filter((flag) => !stands(flag)).length;
  byId("whatif-sum").textContent = fallen ? `${flags.length - fallen} of ${flags.length} flags would remain` : "";
}
