// A running graph: the page's time goes on by itself, and stands still where the viewer pauses.
const WINDOW_MS = 600000, TICK_MS = 250;
const live = { end: 0, at: 0, span: 0, seen: 0 };

// Take the server's time; between two answers, this computer's clock goes on from it.
function tellTime(end) {
  live.end = Math.max(end, liveEnd());
  live.at = performance.now();
}
// What is known of the live edge: whether data arrives there, and else when it last did.
const isStopped = () => link.problem !== "";
function edgeText() {
  const quiet = data.state.quiet;
  if (isStopped()) return "stopped";
  return !quiet ? "live" : quiet.last == null ? "no data yet" : `no data since ${clock(quiet.last)}`;
}
// Why nothing is known of a moment; empty where something is.
function noDataAt(at) {
  if (!data.live) return !data.complete && at > data.read ? `The bag is read to ${clock(data.read)} so far.` : "";
  const outage = outages().find((each) => each.start <= at && at <= each.end), quiet = data.state.quiet;
  if (outage) return outageText(outage) + ".";
  if (!quiet || at <= (quiet.last ?? -1)) return "";
  return quiet.last == null ? "No data yet." : `No data since ${clock(quiet.last)}.`;
}
const liveEnd = () => live.at && !link.problem ? live.end + performance.now() - live.at : live.end;

// Move the window along, as wide as the viewer zoomed it, unless it was moved away from the end.
function followEnd(before) {
  if (!replay.live) return;
  const span = view.to - view.from, all = Math.max(1, length - first());
  if (view.to < before - 1) return;
  const wide = Math.abs(span - live.span) <= 1 ? Math.min(all, WINDOW_MS) : Math.min(all, span);
  view.to = length;
  view.from = length - wide;
  if (wide !== span) live.span = wide;
}

function tick() {
  const before = length;
  length = Math.max(1, data.end, liveEnd());
  followEnd(before);
  extendTurns();
  seek(replay.live ? length : replay.at);
}

function nameLive() {
  const news = flags.filter((flag) => flag.known > live.seen).length;
  const name = edgeText() === "live" ? "Live" : "Latest";
  byId("live").textContent = !replay.live && news ? `${name} · ${news} new` : name;
}

function goLive() {
  replay.playing = false;
  replay.live = true;
  view.to = length;
  view.from = length - Math.min(Math.max(1, length - first()), live.span || WINDOW_MS);
  showPlaying();
  tick();
}

// For a viewer who asks for it: the moment and the lists.
function goLatest() {
  goLive();
  list.scrollTop = list.scrollHeight;
  following = true;
  followLine();
}

function startLive() {
  document.documentElement.classList.add("live");
  byId("kicker").textContent = "Running graph";
  byId("times").textContent = "Times are those of this computer's clock.";
  byId("zoom-all").textContent = "Everything kept";
  byId("live").hidden = byId("outage-key").hidden = false;
  tellTime(data.end);
  live.span = view.to - view.from;
  goLatest();
  setInterval(() => { if (replay.live) live.seen = length; tick(); }, TICK_MS);
}
