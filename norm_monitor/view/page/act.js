// What a viewer of a running graph may change: the monitor's sensitivity, what it mutes, and verdicts.
const LEVELS = ["quiet", "balanced", "keen"], CODER = "tactful-view-coder";
// A name lasts as long as the tab, so that the next person at this computer gives another.
try { state.coder = sessionStorage.getItem(CODER) ?? ""; } catch (error) { /* this browser keeps nothing */ }

let isRefused = false;
async function send(path, body) {
  byId("saved").textContent = "Sending …";
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json", "X-Token": data.token }, body: JSON.stringify(body) });
    byId("saved").textContent = answer.ok ? "Done." : "Not done: " + await answer.text();
    isRefused = !answer.ok;
  } catch (error) {
    byId("saved").textContent = "Not done: the server does not answer.";
    isRefused = true;
  }
  return !isRefused;
}

const coderInput = make("input", { id: "coder", autocomplete: "off", maxlength: 40, value: state.coder, oninput: () => {
  state.coder = coderInput.value.trim();
  keepCoder();
} });
function nameCoder(name) { state.coder = coderInput.value = name; }
function keepCoder() { try { sessionStorage.setItem(CODER, state.coder); } catch (error) { /* this browser keeps nothing */ } }
// A monitor that started again has its own settings, whatever viewers set before.
let restartShown = "", instanceShown = "";
function showRestart() {
  const restart = data.state.restart, key = JSON.stringify(restart ?? null);
  if (data.state.settings && data.state.settings.instance !== instanceShown) {
    if (isRefused) byId("saved").textContent = "";
    instanceShown = data.state.settings.instance;
  }
  if (key === restartShown) return;
  restartShown = key;
  if (!restart) { byId("lost").replaceChildren(); return; }
  const names = (all) => all.map(spoken).join(", ");
  const were = [restart.sensitivity && `sensitivity ${restart.sensitivity}`, restart.muted.length && `muted ${names(restart.muted)}`, restart.unmuted.length && `not muted ${names(restart.unmuted)}`].filter(Boolean).join("; ");
  byId("lost").replaceChildren(make("div", { class: "lost" },
    make("p", {}, `The monitor started again at ${clock(restart.at)} with its own settings. Set from this page before: ${were}.`),
    make("div", { class: "row" }, make("button", { type: "button", onclick: () => send("settings", { restore: true }) }, "Set these again"), make("button", { type: "button", onclick: () => send("settings", { restore: false }) }, "Keep the monitor's settings"))));
}

let settingsShown = "";
function showSettings() {
  showRestart();
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
    settings && make("div", { class: "row mutes" }, ...names.map((name) => make("button", { type: "button", onclick: () => send("settings", { mute: name }) }, `Mute ${spoken(name)}`))), promptParts(flag, settings));
}
function promptParts(flag, settings) {
  const digest = flag.provenance.prompt_digest;
  if (!digest || !settings) return null;
  if (!settings.prompts) return make("p", { class: "explain" }, "The prompt of the judge is not kept: set judge.prompts_folder.");
  const holder = make("div", {});
  const load = async () => {
    try {
      const answer = await fetch(`prompt?digest=${digest}`, { headers: { "X-Token": data.token } });
      holder.replaceChildren(make(answer.ok ? "pre" : "p", { class: answer.ok ? "prompt" : "explain", tabindex: answer.ok && 0 }, await answer.text()));
    } catch (error) { holder.replaceChildren(make("p", { class: "explain" }, "The server does not answer.")); }
  };
  return make("div", {}, make("button", { type: "button", onclick: load }, "Show what the judge was asked"), holder);
}
function give(flag, verdict, label = {}) {
  const { polarity = null, attributes = [], severity = null, note = "" } = label;
  return send("reviews", { event_id: flag.id, coder: state.coder, verdict, polarity, attributes, severity, note });
}
