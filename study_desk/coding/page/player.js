// The moment that the page shows: picture, sound and words, moved by the scrubber, the timeline, the keys or the clock.
const replay = { at: 0, playing: false, last: 0 };
const video = byId("video"), sound = byId("sound"), headers = { "X-Token": data.token };
const STILL_MS = 250, PIECE_MS = 30000, MOST_PIECES = 6, MOST_SAID = 3;

// The video tells the time where it has one.
const inVideo = () => data.media.video && video.readyState > 0 && !video.ended && replay.at >= data.media.offset && replay.at < data.media.offset + video.duration * 1000;

function showAt(ms) {
  replay.at = Math.min(Math.max(0, ms), length);
  const cursor = byId("cursor");
  cursor.max = length;
  cursor.value = replay.at;
  cursor.setAttribute("aria-valuetext", clock(replay.at));
  byId("at").textContent = `${clock(replay.at, 1)} of ${clock(length)}`;
  if (replay.at < view.from || replay.at > view.to) look(replay.at - (view.to - view.from) * .1, replay.at + (view.to - view.from) * .9);
  showCaptions();
  if (data.media.video) {
    if (!inVideo()) video.pause();
  } else showStill(replay.at);
  draw();
}

function seek(ms) {
  showAt(ms);
  if (data.media.video) video.currentTime = Math.max(0, (replay.at - data.media.offset) / 1000);
  else if (replay.playing) playSound(true);
}

function play(on) {
  if (on && replay.at >= length) seek(0);
  replay.playing = on;
  byId("play").textContent = on ? "Pause" : "Play";
  replay.last = performance.now();
  if (on) requestAnimationFrame(advance);
  else { video.pause(); sound.pause(); }
}

function advance(now) {
  if (!replay.playing) return;
  const speed = Number(byId("speed").value);
  if (inVideo()) {
    video.playbackRate = speed;
    if (video.paused) video.play().catch(() => play(false));
    showAt(video.currentTime * 1000 + data.media.offset);
  } else {
    // A browser that slept goes on where it was.
    showAt(replay.at + Math.min(now - replay.last, 1000) * speed);
    playSound();
  }
  replay.last = now;
  if (replay.at < length) requestAnimationFrame(advance);
  else play(false);
}

// One still at a time; the one asked for last is the one shown.
const still = { wanted: -1, shown: -1, busy: false };
function showStill(at) {
  if (!data.media.stills) { noStill(data.media.why || "There is no picture."); return; }
  still.wanted = Math.floor(at / STILL_MS) * STILL_MS;
  if (!still.busy && still.wanted !== still.shown) fetchStill();
}
async function fetchStill() {
  still.busy = true;
  const wanted = still.wanted;
  try {
    const answer = await fetch(`still?at=${wanted}`, { headers });
    if (answer.status === 200) {
      const picture = byId("still"), old = picture.src;
      picture.src = URL.createObjectURL(await answer.blob());
      if (old) URL.revokeObjectURL(old);
      picture.alt = `What the camera saw at ${clock(wanted)}, faces blurred`;
      picture.hidden = false;
      byId("no-still").hidden = true;
    } else noStill(answer.status === 204 ? "The camera has no picture of this moment." : await answer.text());
  } catch (error) { noStill("The server does not answer. Ask who gave you the link to start it again."); }
  still.shown = wanted;
  still.busy = false;
  if (still.wanted !== wanted) fetchStill();
}
function noStill(why) {
  byId("still").hidden = true;
  byId("no-still").hidden = false;
  byId("no-still").textContent = why;
}

// Sound comes in pieces, the next one before this one ends.
const pieces = new Map();
function pieceOf(number) {
  if (number * PIECE_MS >= length) return null;
  if (!pieces.has(number)) {
    pieces.set(number, { url: "" });
    fetchPiece(number, pieces.get(number));
    if (pieces.size > MOST_PIECES) {
      const [oldest, piece] = pieces.entries().next().value;
      if (piece.url) URL.revokeObjectURL(piece.url);
      pieces.delete(oldest);
    }
  }
  return pieces.get(number);
}
async function fetchPiece(number, piece) {
  try {
    const answer = await fetch(`sound?piece=${number}`, { headers });
    if (answer.status === 200) piece.url = URL.createObjectURL(await answer.blob());
  } catch (error) { pieces.delete(number); }
}
function playSound(moved = false) {
  if (!data.media.sound) return;
  const number = Math.floor(replay.at / PIECE_MS), piece = pieceOf(number), into = (replay.at - number * PIECE_MS) / 1000;
  if (into > PIECE_MS / 2000) pieceOf(number + 1);
  if (!piece?.url) { sound.pause(); return; }
  if (sound.src !== piece.url) { sound.src = piece.url; moved = true; }
  sound.playbackRate = Number(byId("speed").value);
  if (moved || Math.abs(sound.currentTime - into) > .25) sound.currentTime = into;
  if (sound.paused && !sound.ended) sound.play().catch(() => {});
}

let captioned = "";
function showCaptions() {
  const near = between(data.speech, replay.at, replay.at, Math.max(longest.robot, longest.user)).slice(-MOST_SAID);
  const key = near.map((said) => said.id).join();
  if (key === captioned) return;
  captioned = key;
  byId("captions").replaceChildren(...near.map((said) => make("p", { lang: said.locale || false, dir: "auto" }, make("b", {}, whoSaid(said)), " ", said.text || "…")));
}

hooks.focus = () => replay.at;
hooks.stepFrom = () => replay.at;
hooks.clicked = (ms) => seek(ms);
// A click in the timeline leaves the arrow keys with the player.
canvas.addEventListener("mousedown", (event) => { event.preventDefault(); document.activeElement?.blur(); });
byId("cursor").addEventListener("input", (event) => seek(Number(event.target.value)));
byId("play").addEventListener("click", () => play(!replay.playing));
if (data.media.video) {
  byId("no-still").hidden = true;
  video.hidden = false;
  video.preload = "auto";
  video.src = `video?token=${encodeURIComponent(data.token)}`;
  video.addEventListener("error", () => { video.hidden = true; noStill("This browser cannot play the video; convert it to mp4 (H.264) or webm."); });
}
