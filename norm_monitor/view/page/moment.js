// What is seen, said, raised and known at the moment of the replay.
const LINGER_MS = data.live ? 20000 : 5000, SAID_MS = data.live ? 30000 : 9000, MOST_SAID = data.live ? 6 : 4, AWAY_MS = data.live ? 4000 : 1500;
const APART_MS = 5000;  // what lies further apart has no data between
let lastShown = "", stretches = [];

function showMoment() {
  const at = replay.at;
  const near = between(data.speech, at - SAID_MS, at, Math.max(longest.robot, longest.user)).slice(-MOST_SAID);
  const raised = items.filter((item) => (item.known <= at && at < item.known + LINGER_MS) || (item.start <= at && at <= item.end && item.known <= at) || item.id === state.selected && item.start <= at + 1 && at <= item.end + LINGER_MS).slice(-3).reverse();
  const health = healthAt(at), here = presenceAt(at);
  const nothing = noDataAt(at);
  const key = JSON.stringify([near.map((said) => [said.id, said.end >= at]), raised.map((item) => [item.id, item.why]), health.map((each) => each.id), items.filter((item) => item.known <= at).length, here?.people, here?.away, nothing, data.version]);
  showStill(at);
  markLines(at);
  byId("health-at").textContent = !replay.live ? `at ${clock(at)}` : edgeText() === "live" ? "now" : edgeText();
  byId("settings-at").textContent = data.state.silence || isStopped() ? "as last heard" : replay.live ? "now" : "now, not at the moment shown";
  if (key === lastShown) return;
  lastShown = key;
  const silence = nothing || (near.length ? "" : data.state.speech_missing ?? "Nobody speaks.");
  byId("said").replaceChildren(...near.map((said) => make("p", { class: said.end >= at ? "speaking" : "", lang: said.locale || false, dir: "auto" }, make("time", {}, clock(said.start)), make("b", {}, whoSaid(said)), make("span", {}, said.text))), ...(silence ? [make("p", { class: "explain" }, make("span", {}), make("span", {}), make("span", {}, silence))] : []));
  byId("raised").replaceChildren(...raised.map((item) => make("button", { type: "button", class: "raised " + item.kind, onclick: () => select(item.id) }, make("b", {}, momentName(item)), item.kind !== "decision" && make("small", {}, `${timeOf(item)}, ${flaggedAt(item)}`), item.why)));
  byId("present").textContent = !here ? "" : here.people ? `${here.people} ${here.people === 1 ? "person" : "people"} present${here.away ? ", looking away" : ""}` : "nobody present";
  showHealth(health, outages().filter((each) => each.start <= at).slice(-3));
  fillList();
  byId("later-note").hidden = !visible.some(hooks.isLater);
  fitSaid(byId("said"));
}
// The oldest lines go, as half a line would look broken; of one long line, the end stays.
function fitSaid(box) {
  while (box.scrollHeight > box.clientHeight && box.childElementCount > 1) box.firstChild.remove();
  box.scrollTop = box.scrollHeight;
}
// Who was there last stays until a later stretch is known, as frames arrive late.
function presenceAt(at) {
  const place = stretches.findLastIndex((part) => part.start <= at), last = stretches[place], next = stretches[place + 1];
  if (!last || at <= last.end) return last;
  return next ? (next.start - last.end < APART_MS ? next : null) : at <= last.end + AWAY_MS ? last : null;
}
function momentName(item) {
  return item.kind === "decision" ? "Recommended: " + nameOf(item) : `${title(kindOf(item))}: ${nameOf(item).toLowerCase()}`;
}

// The last status of each node.
function healthAt(at) {
  const last = new Map();
  for (const each of data.health) if (each.start <= at) last.set(each.node, each);
  return [...last.values()];
}
// The server states a health that stays as it is again within a minute.
const HEALTH_MS = 65000;
function showHealth(health, out) {
  const bad = health.filter((each) => each.health !== "ok");
  byId("health-sum").textContent = !health.length ? "" : bad.length ? `${bad.length} of ${health.length} nodes need attention` : `${health.length} ${health.length === 1 ? "node" : "nodes"} ok`;
  byId("health").replaceChildren(health.length
    ? make("dl", { class: "health" }, ...health.flatMap((each) => [
      make("dt", {}, `${each.node}: ${each.health}, ${each.state}` + (replay.at > each.end + HEALTH_MS ? `; last heard at ${clock(each.end)}` : "")),
      ...each.reasons.map((reason) => make("dd", { class: "bad" }, reason)), ...each.notes.map((note) => make("dd", {}, note))]))
    : make("p", { class: "explain" }, data.health.length || data.live ? "No node has reported yet." : "The bag holds no status of the nodes."), ...out.map((each) => make("p", { class: "explain" }, outageText(each) + ".")));
}

// One still at a time; the one asked for last is the one shown.
const still = { wanted: -1, shown: -1, pictured: -1, busy: false };
function showStill(at) {
  if (!data.stills && !data.live) { noStill("The bag has no camera."); return; }
  still.wanted = Math.floor(at);
  askStill();
}
// While time goes on, a picture stays for a moment; a moment at which the viewer stops has a picture of its own.
function askStill() {
  const step = !replay.live && !replay.playing ? 1 : data.live && !byId("still").hidden ? 1000 : 250;
  if (!still.busy && Math.abs(still.wanted - still.shown) >= step) fetchStill();
}
async function fetchStill() {
  still.busy = true;
  const wanted = still.wanted;
  try {
    const answer = await fetch(`still?at=${wanted}`, { headers: { "X-Token": data.token } });
    if (answer.status === 200) {
      const picture = byId("still"), old = picture.src;
      picture.src = URL.createObjectURL(await answer.blob());
      if (old) URL.revokeObjectURL(old);
      picture.alt = `What the camera saw at ${clock(wanted)}`;
      picture.hidden = false;
      byId("no-still").hidden = true;
      still.pictured = wanted;
    } else noStill(answer.status === 204 ? data.live ? (still.pictured < 0 ? "No camera frame has arrived yet." : "No camera frame arrived in the five seconds before this moment.") : "The camera has no picture of this moment." : await answer.text());
  } catch (error) {
    // The last picture stays, marked, at the end; no other moment has one.
    if (!replay.live || byId("still").hidden) noStill("There is no picture: this page's server does not answer.");
  }
  showStopped();
  still.shown = wanted;
  still.busy = false;
  askStill();
}
function showStopped() {
  document.documentElement.classList.toggle("stopped", isStopped());
  const late = replay.live && data.state.late_s ? `Pictures come ${data.state.late_s} s late.` : "";
  byId("still-caption").textContent = byId("still").hidden ? "" : isStopped() ? `Stopped: the last picture, of ${clock(still.pictured)}.` : late;
}
function noStill(why) {
  byId("still").hidden = true;
  byId("no-still").hidden = false;
  byId("no-still").textContent = why;
}
