// What htmx does not do. The script says when the console no longer answers, and which columns of a table do not fit. It asks
// nothing while the page is hidden, and keeps the place in tables that are wider than the screen. It leads to the plan of a move
// where a person drags a slot to a free cell.
(() => {
  const lost = (shown) => { document.getElementById("lost").hidden = !shown; };
  const tables = () => [...document.querySelectorAll("#live .scroll")];
  const target = (event) => event.target.closest?.("td[data-free]");
  const mayDrop = (event) => dragged && target(event)?.parentElement === dragged.parentElement;
  const drag = (cell) => {
    dragged?.parentElement.classList.remove("dragging");
    dragged = cell;
    dragged?.parentElement.classList.add("dragging");
  };
  // Says under a table that is wider than the screen which columns are to the right.
  const nameHidden = () => document.querySelectorAll(".scroll").forEach((one) => {
    const note = one.nextElementSibling, edge = one.getBoundingClientRect().right;
    const heads = [...one.querySelectorAll("thead th")].filter((head) => head.getBoundingClientRect().right > edge + 8);
    if (!note?.classList.contains("more-columns")) return;
    note.hidden = !heads.length;
    note.textContent = `To the right: ${heads.map((head) => head.textContent).join(", ")}`;
  });
  let places = [], dragged = null;
  document.addEventListener("scroll", nameHidden, true);
  addEventListener("resize", nameHidden);
  document.addEventListener("htmx:afterSettle", nameHidden);
  document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  nameHidden();
  document.addEventListener("htmx:sendError", () => lost(true));
  document.addEventListener("htmx:timeout", () => lost(true));
  document.addEventListener("htmx:responseError", () => lost(true));
  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) lost(false); });
  document.addEventListener("htmx:beforeRequest", (event) => { if (document.hidden || dragged) event.preventDefault(); });
  document.addEventListener("htmx:beforeSwap", () => { places = tables().map((one) => one.scrollLeft); });
  document.addEventListener("htmx:afterSwap", () => { tables().forEach((one, n) => { one.scrollLeft = places[n] || 0; }); });
  document.addEventListener("dragstart", (event) => drag(event.target.closest?.("td[data-move]") ?? null));
  document.addEventListener("dragend", () => drag(null));
  document.addEventListener("dragover", (event) => { if (mayDrop(event)) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    if (!mayDrop(event)) return;
    event.preventDefault();
    location.assign(`${dragged.dataset.move}&target=${target(event).dataset.free}`);
  });
})();
