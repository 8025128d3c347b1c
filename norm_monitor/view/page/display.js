// Light, dark, larger text and the keys that every page has.
byId("larger").addEventListener("click", () => { pressed(byId("larger"), document.documentElement.classList.toggle("large")); layout(); refresh(); });
function setDark(dark) {
  document.documentElement.classList.toggle("dark", dark);
  byId("theme").textContent = dark ? "Light" : "Dark";
  layout();
}
byId("theme").addEventListener("click", () => setDark(!document.documentElement.classList.contains("dark")));
byId("help").addEventListener("click", () => byId("keys").showModal());
byId("next").addEventListener("click", () => step(1));
byId("previous").addEventListener("click", () => step(-1));
