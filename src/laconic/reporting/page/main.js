// Reads the data of the page and fills its panels; nothing is fetched.

function start() {
  const { summary: data, words: w } = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  let onRule = () => {};
  if (at("what-if-panel")) onRule = whatIfPanel(at("what-if-panel"), data, w);
  if (data.sliders) thresholdPanel(at("play-panel"), data, w, onRule);
  else mixPanel(at("play-panel"), data, w, onRule);
  trustPanel(at("trust-panel"), data, w);
  modelPanel(at("model-panel"), data, w);
  sizePanel(at("size-panel"), data, w);
  mapPanel(at("map-panel"), data, w);
  document.documentElement.dataset.ready = "yes";
}
start();
