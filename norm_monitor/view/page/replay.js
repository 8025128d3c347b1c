// The moment that the page shows, moved by the scrubber, the timeline, the keys or the clock.
const replay = { at: 0, playing: false, live: false, last: 0 };
// Of a running graph, the scrubber goes back so far.
const BACK_MS = 600000;

function seek(ms) {
  replay.at = Math.min(Math.max(first(), ms), length);
  const cursor = byId("cursor");
  if (data.live) cursor.min = Math.floor(Math.max(first(), Math.min(length - BACK_MS, replay.at)));
  cursor.max = length;
  cursor.value = replay.at;
  const text = data.live ? (replay.live ? edgeText() : `${elapsed(length - replay.at)} ago`) : `${clock(replay.at, 1)} of ${clock(length)}`;
  cursor.setAttribute("aria-valuetext", data.live ? `${clock(replay.at)}, ${text}` : clock(replay.at));
  byId("at").textContent = data.live ? `${clock(replay.at)} · ${text}` : text;
  if (data.live) nameLive();
  if (!replay.live && (replay.at < view.from || replay.at > view.to)) look(replay.at - (view.to - view.from) * .1, replay.at + (view.to - view.from) * .9);
  showMoment();
  draw();
}

function play(on) {
  if (on && data.live && replay.at >= length - 1000) { goLive(); return; }
  if (on && replay.at >= length) seek(0);
  replay.playing = on;
  if (replay.live) live.seen = length;
  replay.live = false;
  showPlaying();
  replay.last = performance.now();
  if (on) requestAnimationFrame(advance);
}
function advance(now) {
  if (!replay.playing) return;
  // A browser that slept goes on where it was.
  seek(replay.at + Math.min(now - replay.last, 1000) * Number(byId("speed").value));
  replay.last = now;
  if (replay.at < length) requestAnimationFrame(advance);
  else if (data.live) goLive();
  else play(false);
}
function showPlaying() {
  byId("play").textContent = replay.playing || replay.live ? "Pause" : "Play";
  pressed(byId("live"), replay.live);
}

hooks.focus = () => replay.at;
hooks.stepFrom = () => replay.live ? null : replay.at;
hooks.clicked = (ms) => { if (data.live) play(false); seek(ms); };
hooks.selected = (item) => { play(false); seek(item.start); };
hooks.decisions = () => visible.filter((item) => item.kind === "decision");
hooks.follows = () => replay.live;
hooks.isLater = (item) => !replay.live && item.known > replay.at && item.id !== state.selected;
hooks.painted = (wide) => {
  const x = xOf(replay.at), whole = shareOf(replay.at) * wide;
  pen.fillStyle = colours.ink;
  pen.fillRect(Math.min(whole, wide - 2), 0, 2, 1.7 * rem);
  if (x >= 0 && x <= wide) pen.fillRect(Math.min(x, wide - 2), 3.1 * rem, 2, height - 3.1 * rem);
};
byId("cursor").addEventListener("input", (event) => { play(false); seek(Number(event.target.value)); });
byId("cursor").addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1000, ArrowDown: -1000, ArrowRight: 1000, ArrowUp: 1000, PageDown: -10000, PageUp: 10000 }[event.key];
  if (!by) return;
  event.preventDefault();
  play(false);
  seek(replay.at + by);
});
byId("play").addEventListener("click", () => play(!(replay.playing || replay.live)));
byId("live").addEventListener("click", () => goLatest());
