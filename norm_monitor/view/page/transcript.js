// The whole transcript: each line leads to its moment, and what is said at the moment is marked.
const lines = new Map(), linesBox = byId("lines");
let spokenLines = [];

function fillTranscript() {
  const here = new Set(data.speech.map((said) => said.id));
  for (const id of lines.keys()) if (!here.has(id)) lines.delete(id);
  for (const said of data.speech) {
    const who = whoSaid(said), key = JSON.stringify([said.start, who, said.text]), old = lines.get(said.id);
    if (old?.key === key) continue;
    const node = old?.node ?? make("li", {}, make("button", { type: "button", tabindex: -1, onclick: () => { play(false); seek(lines.get(said.id).start); } }));
    node.firstChild.replaceChildren(make("time", {}, clock(said.start)), make("b", {}, who), make("span", { lang: said.locale || false, dir: "auto" }, said.text || "…"));
    lines.set(said.id, { node, key, start: said.start, words: `${who}: ${said.text}`.toLowerCase() });
  }
  searchLines();
}

// Only the lines found stand in the page; those that stay are not moved, so that they keep focus and scroll.
function searchLines() {
  const words = byId("line-words").value.trim().toLowerCase();
  const found = data.speech.map((said) => lines.get(said.id)).filter((line) => line.words.includes(words)).map((line) => line.node);
  const wanted = new Set(found);
  for (const node of [...linesBox.children]) if (!wanted.has(node)) node.remove();
  let next = linesBox.firstChild;
  for (const node of found) {
    if (node === next) next = node.nextSibling;
    else linesBox.insertBefore(node, next);
  }
  byId("line-count").textContent = words ? `${found.length} of ${plural(lines.size, "line")}` : plural(lines.size, "line");
  byId("no-lines").hidden = found.length > 0;
  byId("no-lines").textContent = lines.size ? "No line holds these words." : data.state.speech_missing ?? (data.live || !data.complete ? "Nobody has spoken so far." : "Nobody spoke.");
  linesBox.hidden = !found.length;
  if (!tabStop?.isConnected) rove(linesBox.firstChild);
}

// One line is a stop of the Tab key; from it the arrow keys lead to the others.
let tabStop = null;
function rove(node) {
  if (tabStop) tabStop.firstChild.tabIndex = -1;
  tabStop = node;
  if (tabStop) tabStop.firstChild.tabIndex = 0;
}
linesBox.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 }[event.key];
  if (!by) return;
  event.preventDefault();
  const all = [...linesBox.children], at = all.indexOf(tabStop);
  rove(all[Math.min(all.length - 1, Math.max(0, at + by))]);
  tabStop.firstChild.focus();
});
byId("line-words").addEventListener("input", () => { searchLines(); following = true; followLine(); });

// Mark what is said at a moment, or else what was said last.
function markLines(at) {
  const last = data.speech.findLast((said) => said.start <= at);
  const speaking = last ? between(data.speech, at, at, Math.max(longest.robot, longest.user)) : [];
  const now = [...new Set([...speaking, last])].map((said) => said && lines.get(said.id)?.node).filter(Boolean);
  if (now.length === spokenLines.length && now.every((node, i) => node === spokenLines[i])) return;
  for (const node of spokenLines) { node.classList.remove("speaking"); node.firstChild.removeAttribute("aria-current"); }
  for (const node of now) { node.classList.add("speaking"); node.firstChild.setAttribute("aria-current", "true"); }
  spokenLines = now;
  if (now.at(-1)?.isConnected && !linesBox.contains(document.activeElement)) rove(now.at(-1));
  if (following) followLine();
}

// The marked line stays in view, unless somebody scrolled away from it to read.
let following = true, settling = false;
function isMarkInView() {
  const box = linesBox.getBoundingClientRect(), line = spokenLines.at(-1)?.getBoundingClientRect();
  return !line || (line.top >= box.top - 1 && line.bottom <= box.bottom + 1);
}
// Lines out of view have estimated heights, so the next frames may move it again.
function followLine(frames = 5) {
  const node = spokenLines.at(-1);
  settling = frames > 0 && node != null && node.isConnected;
  if (!settling) return;
  const box = linesBox.getBoundingClientRect();
  if (!isMarkInView()) linesBox.scrollTop += node.getBoundingClientRect().top - box.top - box.height / 2;
  requestAnimationFrame(() => followLine(frames - 1));
}
linesBox.addEventListener("scroll", () => { if (!settling) following = isMarkInView(); }, { passive: true });
new IntersectionObserver(() => { if (following) followLine(); }).observe(linesBox);
