// What a viewer of a running graph may change: the monitor's sensitivity, what it mutes, and verdicts.
const LEVELS = ["quiet", "balanced", "keen"], CODER = "tactful-view-coder";
// A name lasts as long as the tab, so that the next person at this computer gives another.
try { state.coder = sessionStorage.getItem(CODER) ?? ""; } catch (error) { /* this browser keeps nothing */ }

async function send(path, body) {
  byId("saved").textContent = "Sending …";
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json", "X-Token": data.token }, body: JSON.stringify(body) });
    byId("saved").textContent = answer.ok ? "Done." : "Not done: " + await answer.text();
    return answer.ok;
  } catch (error) {
    byId("saved").textContent = "Not done: the server does not answer.";
    return false;
  }
}

const coderInput = make("input", { id: "coder", autocomplete: "off", maxlength: 40, value: state.coder, oninput: () => {
  state.coder = coderInput.value.trim();
  keepCoder();
} });
function nameCoder(name) { state.coder = coderInput.value = name; }
function keepCoder() { try { sessionStorage.setItem(CODER, state.coder); } catch (error) { /* this browser keeps nothing */ } }
let settingsShown = "";
function showSettings() {
  const settings = data.state.settings, key = JSON.stringify(settings ?? null);
  if (!data.live || key === settingsShown) return;
  settingsShown = key;
  if (!settings) { byId("settings").replaceChildren(make("p", { class: "explain" }, "The settings of the monitor are not known yet.")); return; }
  const level = (name) => make("button", { type: "button", "aria-pressed": String(settings.sensitivity === name), "data-level": name, onclick: () => send("settings", { sensitivity: name }) }, title(name));
  const focused = document.activeElement?.dataset.level;
  byId("settings").replaceChildren(
    make("div", { class: "row", role: "group", "aria-label": "Sensitivity" }, make("span", {}, "Sensitivity"), ...LEVELS.map(level)),
    make("div", { class: "row", role: "group", "aria-label": "Muted" }, make("span", {}, "Muted"), ...(settings.muted.length ? settings.muted.map((name) => make("button", { type: "button", onclick: () => send("settings", { unmute: name }) }, `Unmute ${spoken(name)}`)) : [make("span", { class: "explain" }, "nothing")])),
    make("label", { class: "row" }, make("span", {}, "Coder"), settings.log ? coderInput : make("span", { class: "explain" }, "The monitor keeps no study log, so it takes no verdicts. Set study.log to keep one.")));
  if (focused) document.querySelector(`[data-level="${focused}"]`)?.focus();
}

function judge(flag) {
  const settings = data.state.settings;
  if (!data.acts) return make("p", { class: "explain judge" }, "A bag takes no verdicts: a running monitor takes those into its study log.");
  const muted = settings?.muted ?? [], names = [...new Set([flag.cue, ...flag.attributes])].filter((name) => name && !muted.includes(name));
  return make("div", {}, settings?.log ? verdictParts(flag) : make("p", { class: "explain judge" }, settings ? "No verdict: the monitor keeps no study log." : "No verdict: the settings of the monitor are not known yet."),
    settings && make("div", { class: "row mutes" }, ...names.map((name) => make("button", { type: "button", onclick: () => send("settings", { mute: name }) }, `Mute ${spoken(name)}`))));
}
function give(flag, verdict, label = {}) {
  const { polarity = null, attributes = [], severity = null, note = "" } = label;
  return send("reviews", { event_id: flag.id, coder: state.coder, verdict, polarity, attributes, severity, note });
}
