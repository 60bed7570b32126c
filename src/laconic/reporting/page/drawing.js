// Small drawing kit: elements whose texts are only ever texts, scales, axes.

const LANGUAGE = document.documentElement.lang;
const COLOURS = ["--model", "--second", "--third", "--fourth", "--fifth", "--sixth", "--alarm"];
const colour = (k) => `var(${COLOURS[k % COLOURS.length]})`;

function build(node, attributes, kids) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...kids.filter((kid) => kid !== null && kid !== undefined));
  return node;
}
const el = (tag, attributes, ...kids) => build(document.createElement(tag), attributes, kids);
const SVG = "http://www.w3.org/2000/svg";
const draw = (tag, attributes, ...kids) => build(document.createElementNS(SVG, tag), attributes, kids);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (all, key) => (key in values ? values[key] : all));

const clip = (text, most = 60) => {
  const letters = Array.from(String(text).replace(/\s+/g, " "));
  return letters.length <= most ? letters.join("") : letters.slice(0, most - 1).join("") + "…";
};
const named = (text, most) => el("bdi", { title: clip(text, 400) }, clip(text, most));

const format = (options) => {
  const made = new Intl.NumberFormat(LANGUAGE, options);
  return (value) => made.format(value + 0); // never "-0"
};
const inWhole = format({ maximumFractionDigits: 0 });
const inOne = format({ minimumFractionDigits: 1, maximumFractionDigits: 1 });
const inFour = format({ maximumSignificantDigits: 4 });
const inTwo = format({ maximumSignificantDigits: 2 });
const inTiny = format({ notation: "scientific", maximumFractionDigits: 1 });
const inShort = (value) => {
  const size = Math.abs(value);
  if (size >= 1000) return inWhole(value);
  return size && size < 1e-4 ? inTiny(value) : inFour(value);
};
// Columns made of dates hold days since a day: they are told as dates, with the name of the date.
const DAYS = /\s?: (?:days since|jours depuis le) 2020-01-01$/, DAY = 864e5, REFERENCE = Date.UTC(2020, 0, 1);
const isDays = (name) => DAYS.test(name);
const shortName = (name) => String(name).replace(DAYS, "");
const inDays = (value) => (Math.abs(value) < 7e5 ? new Date(REFERENCE + DAY * Math.floor(value)).toISOString().slice(0, 10) : inShort(value));
const inTicks = (value) => inDays(value).replace(/^(\d{4})-01-01$/, "$1").replace(/^(\d{4}-\d{2})-01$/, "$1");
const textsOf = (name) => (isDays(name) ? inDays : inShort);
// First days of months, every so many of them that a few are between two days; of days where none is.
function dateTicks(low, high, wanted) {
  if (Math.max(-low, high) > 7e5) return niceTicks(low, high, wanted);
  for (const step of [1, 3, 6, 12, 24, 60, 120, 600, 1200]) {
    const first = new Date(REFERENCE + DAY * low), ticks = [];
    for (let month = Math.ceil((12 * first.getUTCFullYear() + first.getUTCMonth()) / step) * step; ticks.length <= wanted; month += step) {
      const at = (Date.UTC(Math.floor(month / 12), month % 12, 1) - REFERENCE) / DAY;
      if (at > high) break;
      if (at >= low) ticks.push(at);
    }
    if (ticks.length <= wanted) return ticks.length > 1 ? ticks : niceTicks(low, high, wanted).map(Math.round);
  }
  return niceTicks(low, high, wanted);
}
const inFourKept = format({ minimumSignificantDigits: 4, maximumSignificantDigits: 4 });
// Cases in a period and the unit of costs, where they were told; counts are else in 1,000 cases.
const UNIT = { cases: null, currency: null };
const scaled = (count) => (UNIT.cases ? count * UNIT.cases / 1000 : count);
const inCurrency = (text) => (UNIT.currency ? `${text}\u00a0${UNIT.currency}` : text);
const inCost = (value) => inCurrency(Math.abs(value) >= 1e-4 && Math.abs(value) < 1000 ? inFourKept(value) : inShort(value));
const inCents = format({ minimumFractionDigits: 2, maximumFractionDigits: 2 });
const inMoney = (value) => inCurrency(Math.abs(value) >= 100 ? inWhole(value) : inCents(value));
const inCount = (value) => (value >= 20 ? inWhole(value) : inOne(value));
const inThree = format({ maximumSignificantDigits: 3 });
const inPercent = (value) => {
  const size = Math.abs(value);
  const digits = size >= 0.1 ? 0 : size >= 0.01 ? 1 : size >= 0.001 ? 2 : 4;
  const shown = new Intl.NumberFormat(LANGUAGE, { minimumFractionDigits: 0, maximumFractionDigits: digits });
  return `${shown.format(100 * value)}\u202f%`;
};
const inSigned = (value) => (Math.abs(value) < 5e-5 ? inWhole(0) : (value > 0 ? "+" : "\u2212") + inThree(Math.abs(value)));

// A number on the page: what is read, and beside it every digit.
function show(node, value, text) {
  node.dataset.value = String(value);
  node.textContent = text(value);
  node.classList.toggle("long", node.textContent.length > 8);
  return node;
}

function niceTicks(low, high, wanted) {
  if (!(high > low)) return [low];
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((k) => k * power >= rough) * power;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) ticks.push(k * step);
  return ticks.map((tick) => Number(tick.toPrecision(12)));
}

const SHARES = [1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.99, 0.999, 0.9999];

// A frame with axes: returns the drawing and the two scales, in pixels of the host's own width.
function frame(host, { height = 240, x, y, left = 52, label }) {
  const width = Math.max(240, Math.round(host.clientWidth || 480));
  const box = { left, right: 12, top: 12, bottom: x.label ? 42 : 26 };
  const reach = { x: width - box.left - box.right, y: height - box.top - box.bottom };
  const along = x.warp || ((v) => v), up = y.warp || ((v) => v);
  const span = (a, b) => (b - a) || 1;
  const px = (v) => box.left + reach.x * (along(v) - along(x.low)) / span(along(x.low), along(x.high));
  const py = (v) => box.top + reach.y * (1 - (up(v) - up(y.low)) / span(up(y.low), up(y.high)));
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const ticksOf = (side, many) => (side.ticks || niceTicks(side.low, side.high, many)).filter((t) => t >= side.low && t <= side.high);
  for (const tick of ticksOf(y, 5)) {
    svg.append(draw("line", { class: "grid", x1: box.left, x2: width - box.right, y1: py(tick), y2: py(tick) }));
    svg.append(draw("text", { x: box.left - 8, y: py(tick) + 4, "text-anchor": "end" }, (y.text || inShort)(tick)));
  }
  let last = -Infinity;
  for (const tick of ticksOf(x, Math.max(3, Math.floor(reach.x / 80)))) {
    const at = px(tick), text = (x.text || inShort)(tick);
    if (at - last < 8 + 6.6 * text.length) continue;
    last = at;
    svg.append(draw("text", { x: at, y: height - box.bottom + 18, "text-anchor": "middle" }, text));
    svg.append(draw("line", { class: "axis", x1: at, x2: at, y1: height - box.bottom, y2: height - box.bottom + 4 }));
  }
  svg.append(draw("line", { class: "axis", x1: box.left, x2: width - box.right, y1: height - box.bottom, y2: height - box.bottom }));
  if (x.label) svg.append(draw("text", { x: box.left + reach.x / 2, y: height - 6, "text-anchor": "middle" }, clip(x.label, Math.floor(width / 7))));
  return { svg, px, py, width, height, box, reach };
}

// A path through points; outside of the frame it is cut, not bent.
function path(points, attributes) {
  const d = points.map(([a, b], k) => `${k ? "L" : "M"}${a.toFixed(2)} ${b.toFixed(2)}`).join("");
  return draw("path", { d, fill: "none", "stroke-width": 2, "stroke-linejoin": "round", ...attributes });
}

let clips = 0;
function clipped(drawing) {
  clips += 1;
  const { box, width, height } = drawing;
  const id = `clip-${clips}`;
  drawing.svg.append(draw("clipPath", { id }, draw("rect", { x: box.left, y: box.top - 4, width: width - box.left - box.right, height: height - box.top - box.bottom + 4 })));
  const group = draw("g", { "clip-path": `url(#${id})` });
  drawing.svg.append(group);
  return group;
}

function legend(entries) {
  return el("ul", { class: "legend" }, ...entries.map(({ text, stroke, dash, dot, ring }) => el("li", {},
    draw("svg", { viewBox: "0 0 24 12", "aria-hidden": "true" },
      dot ? draw("circle", { cx: 12, cy: 6, r: 4.5, fill: ring ? "none" : stroke, stroke: ring ? stroke : "none", "stroke-width": 2 })
        : draw("line", { x1: 1, x2: 23, y1: 6, y2: 6, stroke, "stroke-width": 2.5, "stroke-dasharray": dash })),
    el("span", {}, text))));
}

// Draws at once and again when the width of the host changes.
const REDRAWN = [];
function responsive(host, render) {
  let drawn = -1;
  const again = () => {
    const width = host.clientWidth;
    if (!width || Math.abs(width - drawn) < 2) return;
    drawn = width;
    host.replaceChildren(...[].concat(render(host)));
  };
  again();
  REDRAWN.push(again);
  new ResizeObserver(again).observe(host);
  return () => { drawn = -1; again(); };
}
