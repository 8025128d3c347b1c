function media(flag) {
  const parts = [];
  if (data.server?.clips) {
    const holder = make("div", {});
    parts.push(make("h3", {}, "Clip"), make("button", { type: "button", onclick: () => playClip(flag, holder) }, "Load the clip"), holder);
  } else if (data.server) parts.push(make("h3", {}, "Clip"), make("p", { class: "explain" }, data.server.why));
  return parts;
}
async function playClip(flag, holder) {
  holder.replaceChildren(make("p", { class: "explain", role: "status" }, "Cutting the clip …"));
  const answer = await fetch(`clip/${encodeURIComponent(flag.id)}`, { headers: { "X-Token": data.server.token } });
  if (!answer.ok) { holder.replaceChildren(make("p", { class: "explain", role: "alert" }, await answer.text())); return; }
  const blob = await answer.blob();
  const tag = blob.type.startsWith("audio") ? "audio" : "video";
  holder.replaceChildren(make(tag, { src: URL.createObjectURL(blob), controls: true, "aria-label": "Clip around this moment, faces blurred, other voices muted" }));
}
