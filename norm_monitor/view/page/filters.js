// The filters of the list.
function fillFilters(attributes) {
  const choice = (box, pairs, choose) => {
    byId(box).replaceChildren(...pairs.map(([value, label]) => make("option", { value }, label)));
    byId(box).addEventListener("change", (event) => { choose(event.target.value); refresh(); });
  };
  choice("attribute", [["", "All"], ...attributes.map((each) => [each, title(each)])], (value) => { state.attribute = value; });
  choice("severity", SEVERITIES.map((each, i) => [i, title(each)]), (value) => { state.severity = Number(value); });
  byId("words").addEventListener("input", (event) => { state.words = event.target.value.trim().toLowerCase(); refresh(); });
  for (const chip of document.querySelectorAll(".chip")) {
    chip.addEventListener("click", () => {
      const kind = chip.dataset.kind;
      if (!state.kinds.delete(kind)) state.kinds.add(kind);
      pressed(chip, state.kinds.has(kind));
      refresh();
    });
  }
}
