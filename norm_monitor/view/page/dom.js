const byId = (id) => document.getElementById(id);
const title = (name) => { const s = String(name).replaceAll("_", " "); return s.charAt(0).toUpperCase() + s.slice(1); };
const spoken = (name) => String(name).replaceAll("_", " ");

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child != null && child !== false));
  return node;
}

// The time of a moment: since the session's start, or the time of day where the session goes on now.
function clock(ms, digits = 0) {
  if (data.epoch == null) return elapsed(ms, digits);
  const at = new Date(data.epoch + ms), midnight = new Date(at);
  midnight.setHours(0, 0, 0, 0);
  const text = elapsed(at - midnight, digits);
  return at.getHours() ? text : "0:" + (text.length < 5 + (digits ? digits + 1 : 0) ? "0" : "") + text;
}
// Times are shown to the tenth, and what lies between two of them is the difference of what is shown.
const tenth = (ms) => Math.round(ms / 100) * 100;
const secondsBetween = (from, to) => ((tenth(to) - tenth(from)) / 1000).toFixed(1);
function elapsed(exact, digits = 0) {
  const ms = tenth(exact), sign = ms < 0 ? "−" : "";
  const whole = Math.floor(Math.abs(ms) / 1000);
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60, seconds = whole % 60;
  const two = (n) => String(n).padStart(2, "0");
  const rest = digits ? "." + String(Math.floor(Math.abs(ms) % 1000)).padStart(3, "0").slice(0, digits) : "";
  return sign + (hours ? hours + ":" + two(minutes) : minutes) + ":" + two(seconds) + rest;
}
const number = (value) => Math.abs(value) >= 100 ? value.toFixed(0) : String(Math.round(value * 100) / 100);
