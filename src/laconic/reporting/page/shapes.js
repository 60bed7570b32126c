// Panel of the model: one drawing for each part of the sum.

const AT_FIRST = 12;

const slotNames = (axis, w) => {
  if (axis.kind === "categories") return [...axis.groups.map((texts) => texts.join(", ") || w.other_texts), axis.other || w.other, w.missing];
  const own = (axis.specials || []).map((value) => `= ${inShort(value)}`);
  if (axis.kind === "knots") return [...axis.knots.map(inShort), ...own, w.missing];
  const b = axis.bounds;
  const texts = b.map((bound, k) => (k === 0 ? `≤ ${inShort(bound)}` : `${inShort(b[k - 1])} – ${inShort(bound)}`));
  return [...texts, b.length ? `> ${inShort(b[b.length - 1])}` : "…", ...own, w.missing];
};

const rangeOf = (values) => {
  const low = Math.min(0, ...values), high = Math.max(0, ...values);
  const room = 0.08 * (high - low) || 0.5;
  return { low: low - room, high: high + room };
};

const zeroLine = (f) => draw("line", { class: "axis", x1: f.box.left, x2: f.width - f.box.right, y1: f.py(0), y2: f.py(0) });

function lineShape(host, term, s) {
  const reach = term.reach || [0, 0, 0, 0, 0, 0, 1];
  const wide = reach[5] - reach[1] || reach[6] - reach[0] || 1;
  const low = Math.max(reach[0], reach[1] - wide), high = Math.min(reach[6], reach[5] + wide) + (reach[6] > reach[0] ? 0 : 1);
  const at = (x) => (x - term.origin) * term.slope[s];
  const f = frame(host, { height: 170, left: 46, label: term.columns[0], x: { low, high }, y: rangeOf([at(low), at(high)]) });
  f.svg.append(zeroLine(f), path([[f.px(low), f.py(at(low))], [f.px(high), f.py(at(high))]], { stroke: colour(0) }));
  const base = f.height - f.box.bottom - 4;
  f.svg.append(
    draw("line", { x1: f.px(Math.max(low, reach[1])), x2: f.px(Math.min(high, reach[5])), y1: base, y2: base, stroke: "var(--line)", "stroke-width": 3 }),
    draw("line", { x1: f.px(reach[2]), x2: f.px(reach[4]), y1: base, y2: base, stroke: "var(--soft)", "stroke-width": 3 }));
  return f.svg;
}

function bars(f, edges, mass) {
  const most = Math.max(...mass.map((m, k) => m / Math.max(edges[k + 1] - edges[k], 1e-300)));
  return mass.map((m, k) => {
    const tall = 26 * (m / Math.max(edges[k + 1] - edges[k], 1e-300)) / (most || 1);
    return draw("rect", { x: f.px(edges[k]), width: Math.max(f.px(edges[k + 1]) - f.px(edges[k]) - 0.5, 0.5), y: f.height - f.box.bottom - tall, height: tall, fill: "var(--faint)" });
  });
}

function curveShape(host, term, s, w) {
  const axis = term.axes[0], stepped = axis.kind === "intervals";
  const marks = stepped ? axis.bounds : axis.knots;
  const many = stepped ? marks.length + 1 : marks.length;
  const values = term.values.map((row) => row[s]);
  let low = marks[0], high = marks[marks.length - 1];
  const room = 0.06 * (high - low) || 1;
  low -= room; high += room;
  const beside = values.slice(many).map((value, k) => ({ value, name: slotNames(axis, w)[many + k], mass: term.mass[many + k] })).filter((b) => b.mass > 0);
  const span = (high - low) * (1 + 0.14 * beside.length);
  const f = frame(host, { height: 170, left: 46, label: term.columns[0], x: { low, high: low + span, ticks: niceTicks(low, high, 4) }, y: rangeOf(values) });
  const edges = stepped ? [low, ...marks, high] : [marks[0], ...marks.slice(1).map((m, k) => (m + marks[k]) / 2), high];
  f.svg.append(...bars(f, edges, term.mass.slice(0, many)), zeroLine(f));
  const points = stepped
    ? values.slice(0, many).flatMap((v, k) => [[f.px(edges[k]), f.py(v)], [f.px(edges[k + 1]), f.py(v)]])
    : [[f.px(low), f.py(values[0])], ...marks.map((m, k) => [f.px(m), f.py(values[k])]), [f.px(high), f.py(values[many - 1])]];
  f.svg.append(path(points, { stroke: colour(0) }));
  beside.forEach((b, k) => {
    const at = f.px(high + (high - low) * 0.14 * (k + 0.6));
    f.svg.append(draw("circle", { cx: at, cy: f.py(b.value), r: 4, fill: colour(1) }),
      draw("text", { x: at, y: f.height - f.box.bottom + 18, "text-anchor": "middle" }, clip(b.name, 9)));
  });
  return f.svg;
}

function tableShape(host, term, s, w) {
  const names = slotNames(term.axes[0], w), values = term.values.map((row) => row[s]);
  let slots = values.map((_, k) => k).filter((k) => term.mass[k] > 0);
  if (!slots.length) slots = values.map((_, k) => k);
  const ordered = term.axes[0].kind === "categories";
  if (ordered) slots.sort((a, b) => values[b] - values[a]);
  if (slots.length > 9) slots = [...slots.slice(0, 5), ...slots.slice(-4)];
  const width = Math.max(240, host.clientWidth || 300), left = Math.min(118, width * 0.38), line = 21;
  const { low, high } = rangeOf(slots.map((k) => values[k]));
  const px = (v) => left + (width - left - 56) * (v - low) / (high - low);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${slots.length * line + 6}`, role: "img", "aria-label": clip(term.columns[0], 80) });
  svg.append(draw("line", { class: "axis", x1: px(0), x2: px(0), y1: 0, y2: slots.length * line }));
  slots.forEach((k, r) => {
    const y = r * line + 3, value = values[k];
    svg.append(
      draw("text", { x: left - 8, y: y + 12, "text-anchor": "end" }, clip(names[k], Math.floor(left / 6.6))),
      draw("rect", { x: Math.min(px(0), px(value)), y: y + 1, width: Math.max(Math.abs(px(value) - px(0)), 1), height: line - 7, rx: 2, fill: value >= 0 ? colour(0) : colour(1), "fill-opacity": 0.82 }),
      draw("text", { x: width - 4, y: y + 12, "text-anchor": "end" }, inSigned(value)));
  });
  return svg;
}

function gridShape(host, term, s, w) {
  const width = Math.max(240, host.clientWidth || 300), height = 190, left = 74, bottom = 22;
  const rows = term.values.length, columns = term.values[0].length;
  const top = Math.max(...term.values.flat().map((cell) => Math.abs(cell[s]))) || 1;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": term.columns.join(" × ") });
  const cw = (width - left) / columns, ch = (height - bottom) / rows;
  term.values.forEach((row, r) => row.forEach((cell, c) => {
    svg.append(draw("rect", { x: left + c * cw, y: r * ch, width: cw, height: ch, fill: cell[s] >= 0 ? colour(0) : colour(1), "fill-opacity": (0.06 + 0.9 * Math.abs(cell[s]) / top).toFixed(3) }));
  }));
  const across = slotNames(term.axes[1], w), down = slotNames(term.axes[0], w);
  for (const [r, text] of [[0, down[0]], [rows - 1, down[rows - 1]]]) svg.append(draw("text", { x: left - 6, y: (r + 0.5) * ch + 4, "text-anchor": "end" }, clip(text, 11)));
  svg.append(draw("text", { x: left, y: height - 6 }, clip(across[0], 14)), draw("text", { x: width, y: height - 6, "text-anchor": "end" }, clip(across[columns - 1], 14)));
  return svg;
}

// Leaves of a tree in words, for its table and its drawing.
function leavesOf(term, w) {
  const found = [];
  const walk = (node, lines) => {
    if (term.column[node] < 0) { found.push({ text: lines.join("; ") || "…", value: term.values[node] }); return; }
    const c = term.column[node], names = slotNames(term.axes[c], w);
    for (const [next, keep] of [[term.left[node], (rank) => rank <= term.threshold[node]], [term.right[node], (rank) => rank > term.threshold[node]]]) {
      const slots = names.filter((_, k) => keep(term.ranks[c][k]));
      walk(next, [...lines, `${clip(term.columns[c], 24)}: ${clip(slots.join(" | "), 44)}`]);
    }
  };
  walk(0, []);
  return found;
}

function leavesShape(host, term, s, w) {
  const leaves = leavesOf(term, w).map((leaf) => leaf.value[s]);
  const { low, high } = rangeOf(leaves);
  const width = Math.max(240, host.clientWidth || 300), line = 20;
  const px = (v) => 6 + (width - 72) * (v - low) / (high - low);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${leaves.length * line + 4}`, role: "img", "aria-label": term.columns.map((c) => clip(c, 40)).join(", ") });
  leaves.forEach((value, r) => svg.append(
    draw("rect", { x: Math.min(px(0), px(value)), y: r * line + 3, width: Math.max(Math.abs(px(value) - px(0)), 1), height: line - 7, rx: 2, fill: value >= 0 ? colour(0) : colour(1), "fill-opacity": 0.82 }),
    draw("text", { x: width - 4, y: r * line + 14, "text-anchor": "end" }, inSigned(value))));
  return svg;
}

// A yes-or-no column has three parts, whatever the axis that reads it.
function switchShape(host, term, s, w) {
  const cells = [1, 0, null];
  const values = cells.map((cell) => contribution(term, { [term.columns[0]]: cell }));
  const axis = { kind: "categories", groups: [[w.yes]] };
  const hidden = term.mass && term.mass[term.mass.length - 1] > 0 ? 1 : 0;
  const named = { ...term, axes: [{ ...axis, other: w.no }], values, mass: [1, 1, term.mass ? hidden : 0] };
  return tableShape(host, named, s, w);
}

function drawTerm(host, term, s, w) {
  if (term.switch) return switchShape(host, term, s, w);
  if (term.kind === "line") return lineShape(host, term, s);
  if (term.kind === "grid") return gridShape(host, term, s, w);
  if (term.kind === "rules") return leavesShape(host, term, s, w);
  const axis = term.axes[0];
  const numeric = axis.kind === "knots" ? axis.knots.length > 1 : axis.kind === "intervals" && axis.bounds.length > 8;
  return numeric ? curveShape(host, term, s, w) : tableShape(host, term, s, w);
}

function partsTable(term, s, w, positive) {
  let heads, rows;
  if (term.kind === "line") {
    heads = [w.t_part, w.t_weight];
    rows = [[`× (x ${term.origin > 0 ? "−" : "+"} ${inShort(Math.abs(term.origin))})`, inSigned(term.slope[s])], [w.missing, inSigned(term.missing[s])]];
  } else if (term.kind === "rules") {
    heads = [w.t_part, w.t_adds];
    rows = leavesOf(term, w).map((leaf) => [leaf.text, inSigned(leaf.value[s])]);
  } else if (term.kind === "grid") {
    const down = slotNames(term.axes[0], w), across = slotNames(term.axes[1], w);
    heads = [w.t_part, w.t_adds];
    rows = term.values.flatMap((row, r) => row.map((cell, c) => [`${clip(down[r], 20)} × ${clip(across[c], 20)}`, inSigned(cell[s])])).slice(0, 200);
  } else {
    const names = slotNames(term.axes[0], w);
    heads = [w.t_part, w.t_rows, fill(w.t_rate, { name: clip(positive, 20) }), w.t_adds];
    rows = names.map((name, k) => [name, inPercent(term.mass[k]), term.rate[k] === null ? "" : inPercent(term.rate[k]), inSigned(term.values[k][s])]).slice(0, 200);
  }
  return el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...rows.map(([name, ...cells]) => el("tr", {}, el("th", { scope: "row" }, named(name, 60)), ...cells.map((cell) => el("td", {}, cell))))));
}

function termFigure(term, choice, w, positive) {
  const host = el("div", {});
  const details = el("details", { class: "no-print" }, el("summary", {}, w.table_of));
  details.addEventListener("toggle", () => {
    if (details.open) details.replaceChildren(details.firstChild, el("div", { class: "scroll" }, partsTable(term, choice.score, w, positive)));
  });
  const name = el("bdi", { title: clip(term.columns.join(" × "), 400) }, term.columns.map((c) => clip(c, term.columns.length > 1 ? 24 : 44)).join(" × "));
  const node = el("figure", {}, el("figcaption", {}, name, el("small", {}, fill(w.effect, { value: inTwo(term.importance) }))), host, details);
  return { node, start: () => { choice.redraw.push(responsive(host, (at) => drawTerm(at, term, choice.score, w))); } };
}

function modelPanel(host, data, w) {
  const { form, order } = data.model;
  if (!form) return;
  const choice = { score: 0, redraw: [] };
  if (form.intercept.length > 1) {
    host.append(chooser("model-class", w.for_class, data.classes, (k) => {
      choice.score = k;
      for (const again of choice.redraw) again();
      for (const open of host.querySelectorAll("details[open]")) open.open = false;
    }));
  }
  const switches = new Set(data.model.columns.filter((c) => c.kind === "boolean").map((c) => c.name));
  for (const term of form.terms) term.switch = term.columns.length === 1 && switches.has(term.columns[0]);
  const list = el("div", { class: "terms" });
  const add = (places) => {
    const made = places.map((t) => termFigure(form.terms[t], choice, w, data.positive));
    list.append(...made.map((m) => m.node));
    for (const m of made) m.start();
  };
  host.append(list);
  add(order.slice(0, AT_FIRST));
  const rest = order.slice(AT_FIRST);
  if (rest.length) {
    const more = el("button", { type: "button", id: "more-terms" }, fill(w.more_terms, { count: inWhole(rest.length) }));
    more.addEventListener("click", () => { more.remove(); add(rest); });
    host.append(el("div", { class: "row-end" }, more));
  }
}
