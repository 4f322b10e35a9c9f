// What htmx does not do: says when the console no longer answers, asks nothing while nobody looks, and keeps the place in tables
// that are wider than the screen.
(() => {
  const lost = (shown) => { document.getElementById("lost").hidden = !shown; };
  const tables = () => [...document.querySelectorAll("#live .scroll")];
  let places = [];
  document.addEventListener("htmx:sendError", () => lost(true));
  document.addEventListener("htmx:timeout", () => lost(true));
  document.addEventListener("htmx:responseError", () => lost(true));
  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) lost(false); });
  document.addEventListener("htmx:beforeRequest", (event) => { if (document.hidden) event.preventDefault(); });
  document.addEventListener("htmx:beforeSwap", () => { places = tables().map((one) => one.scrollLeft); });
  document.addEventListener("htmx:afterSwap", () => { tables().forEach((one, n) => { one.scrollLeft = places[n] || 0; }); });
})();
