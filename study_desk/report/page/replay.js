// The moment that the page shows, moved by the scrubber, the timeline, the keys or the clock.
const replay = { at: 0, playing: false, last: 0 };

function seek(ms) {
  replay.at = Math.min(Math.max(0, ms), length);
  byId("cursor").value = replay.at;
  byId("cursor").setAttribute("aria-valuetext", clock(replay.at));
  byId("at").textContent = `${clock(replay.at, 1)} of ${clock(length)}`;
  if (replay.at < view.from || replay.at > view.to) look(replay.at - (view.to - view.from) * .1, replay.at + (view.to - view.from) * .9);
  showMoment();
  draw();
}

function play(on) {
  if (on && replay.at >= length) seek(0);
  replay.playing = on;
  byId("play").textContent = on ? "Pause" : "Play";
  replay.last = performance.now();
  if (on) requestAnimationFrame(advance);
}
function advance(now) {
  if (!replay.playing) return;
  // A browser that slept goes on where it was.
  seek(replay.at + Math.min(now - replay.last, 1000) * Number(byId("speed").value));
  replay.last = now;
  if (replay.at >= length) play(false);
  else requestAnimationFrame(advance);
}

hooks.clicked = seek;
hooks.selected = (item) => { play(false); seek(item.start); };
hooks.isLater = (item) => item.known > replay.at && item.id !== state.selected;
hooks.painted = (wide) => {
  const x = xOf(replay.at), whole = replay.at / length * wide;
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
byId("play").addEventListener("click", () => play(!replay.playing));
