// The search of the index: it hides each card that lacks one of the words. Without a script all cards stay.
"use strict";
(() => {
  const field = document.getElementById("search");
  const cards = [...document.querySelectorAll("[data-words]")];
  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const card of cards) {
      card.hidden = !words.every((word) => card.dataset.words.includes(word));
    }
    for (const section of document.querySelectorAll("section")) {
      section.hidden = !section.querySelector("[data-words]:not([hidden])");
    }
    const found = cards.filter((card) => !card.hidden).length;
    document.getElementById("count").textContent = words.length ? `${found} of ${cards.length}` : "";
    document.getElementById("nothing").hidden = found > 0 || words.length === 0;
  };
  field.form.hidden = false;
  field.form.addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("input", show);
  show();
})();
