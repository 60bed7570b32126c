// Reads the data of the page and fills its panels; nothing is fetched.

function start() {
  const { summary: data, words: w } = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  Object.assign(UNIT, data.volume || {});
  let onRule = () => {};
  if (at("what-if-panel")) onRule = whatIfPanel(at("what-if-panel"), data, w);
  if (data.sliders) thresholdPanel(at("play-panel"), data, w, onRule);
  else mixPanel(at("play-panel"), data, w, onRule);
  capacityPanel(at("capacity-panel"), data, w);
  trustPanel(at("trust-panel"), data, w);
  modelPanel(at("model-panel"), data, w);
  sizePanel(at("size-panel"), data, w);
  mapPanel(at("map-panel"), data, w);
  // what is printed, or linked to, is open
  const special = at("specialists");
  // observers of sizes come too late for the printer
  addEventListener("beforeprint", () => { special.open = true; for (const again of REDRAWN) again(); });
  addEventListener("hashchange", () => { if (special.querySelector(`[id="${CSS.escape(location.hash.slice(1))}"]`)) special.open = true; });
  // what scrolls sideways can be reached without a mouse
  const reach = () => {
    for (const one of document.querySelectorAll(".scroll")) {
      if (one.scrollWidth > one.clientWidth + 1) one.setAttribute("tabindex", "0"); else one.removeAttribute("tabindex");
    }
  };
  reach();
  addEventListener("resize", reach);
  special.addEventListener("toggle", reach);
  document.documentElement.dataset.ready = "yes";
}
start();
