// Panel of the model: one drawing for each part of the sum.

const AT_FIRST = 12;

// The parts of an axis; of a date where the column of that name holds days.
const slotNames = (axis, w, column = "") => {
  const text = textsOf(column);
  if (axis.kind === "categories") return [...axis.groups.map((texts) => texts.join(", ") || w.other_texts), axis.other || w.other, w.missing];
  const own = (axis.specials || []).map((value) => `= ${text(value)}`);
  if (axis.kind === "knots") return [...axis.knots.map(text), ...own, w.missing];
  const b = axis.bounds;
  const texts = b.map((bound, k) => (k === 0 ? `≤ ${text(bound)}` : `${text(b[k - 1])} – ${text(bound)}`));
  return [...texts, b.length ? `> ${text(b[b.length - 1])}` : "…", ...own, w.missing];
};

const rangeOf = (values) => {
  const low = Math.min(0, ...values), high = Math.max(0, ...values);
  const room = 0.08 * (high - low) || 0.5;
  return { low: low - room, high: high + room };
};

const daysOf = (name, low, high) => (isDays(name) ? { ticks: dateTicks(low, high, 4), text: inTicks } : {});

const zeroLine = (f) => draw("line", { class: "axis", x1: f.box.left, x2: f.width - f.box.right, y1: f.py(0), y2: f.py(0) });

function lineShape(host, term, s) {
  const reach = term.reach || [0, 0, 0, 0, 0, 0, 1];
  const wide = reach[5] - reach[1] || reach[6] - reach[0] || 1;
  const low = Math.max(reach[0], reach[1] - wide), high = Math.min(reach[6], reach[5] + wide) + (reach[6] > reach[0] ? 0 : 1);
  const at = (x) => (x - term.origin) * term.slope[s];
  const f = frame(host, { height: 170, left: 46, label: term.columns[0], x: { low, high, ...daysOf(term.columns[0], low, high) }, y: rangeOf([at(low), at(high)]) });
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
  const beside = values.slice(many).map((value, k) => ({ value, name: slotNames(axis, w, term.columns[0])[many + k], mass: term.mass[many + k] })).filter((b) => b.mass > 0);
  // names of special values stand beside the curve, each with room of its own
  const along = Math.max(240, Math.round(host.clientWidth || 480)) - 58, apart = Math.min(60, along / (2 * beside.length || 1));
  const each = (high - low) * apart / (along - apart * beside.length);
  const days = daysOf(term.columns[0], low, high);
  const ticks = (days.ticks || niceTicks(low, high, 4)).filter((tick) => !beside.length || tick <= high - 0.25 * each);
  const f = frame(host, { height: 170, left: 46, label: term.columns[0], x: { low, high: high + each * beside.length, ...days, ticks }, y: rangeOf(values) });
  const edges = stepped ? [low, ...marks, high] : [marks[0], ...marks.slice(1).map((m, k) => (m + marks[k]) / 2), high];
  f.svg.append(...bars(f, edges, term.mass.slice(0, many)), zeroLine(f));
  const points = stepped
    ? values.slice(0, many).flatMap((v, k) => [[f.px(edges[k]), f.py(v)], [f.px(edges[k + 1]), f.py(v)]])
    : [[f.px(low), f.py(values[0])], ...marks.map((m, k) => [f.px(m), f.py(values[k])]), [f.px(high), f.py(values[many - 1])]];
  f.svg.append(path(points, { stroke: colour(0) }));
  beside.forEach((b, k) => {
    const at = f.px(high + each * (k + 0.6));
    f.svg.append(draw("circle", { cx: at, cy: f.py(b.value), r: 4, fill: colour(1) }),
      draw("text", { x: at, y: f.height - f.box.bottom + 18, "text-anchor": "middle" }, clip(b.name, Math.floor(apart / 6.4))));
  });
  return f.svg;
}

function tableShape(host, term, s, w) {
  const names = slotNames(term.axes[0], w, term.columns[0]), values = term.values.map((row) => row[s]);
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
      draw("text", { x: left - 8, y: y + 12, "text-anchor": "end" }, clip(names[k], Math.floor(left / 7.2))),
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
  const across = slotNames(term.axes[1], w, term.columns[1]), down = slotNames(term.axes[0], w, term.columns[0]);
  for (const [r, text] of [[0, down[0]], [rows - 1, down[rows - 1]]]) svg.append(draw("text", { x: left - 6, y: (r + 0.5) * ch + 4, "text-anchor": "end" }, clip(text, 11)));
  svg.append(draw("text", { x: left, y: height - 6 }, clip(across[0], 14)), draw("text", { x: width, y: height - 6, "text-anchor": "end" }, clip(across[columns - 1], 14)));
  return svg;
}

// Slots of an axis in words: neighbouring intervals are one.
function slotsText(axis, kept, w, short, column) {
  const text = textsOf(column), names = slotNames(axis, w, column), named = axis.kind === "categories" ? axis.groups.length : names.length - 1;
  // in a drawing, "any other" and "missing" are told where nothing else is
  const last = short && kept.slice(0, named).some(Boolean) ? named : names.length;
  if (axis.kind !== "intervals") return names.filter((_, k) => kept[k] && k < last).join(", ");
  const b = axis.bounds, said = [];
  for (let k = 0; k <= b.length; k += 1) {
    if (!kept[k]) continue;
    let end = k;
    while (end < b.length && kept[end + 1]) end += 1;
    if (k === 0 && end === b.length) said.push("…");
    else if (k === 0) said.push(`≤ ${text(b[end])}`);
    else said.push(end === b.length ? `> ${text(b[k - 1])}` : `${text(b[k - 1])} – ${text(b[end])}`);
    k = end;
  }
  return [...said, ...names.slice(b.length + 1, last).filter((_, k) => kept[b.length + 1 + k])].join(", ");
}

// Leaves of a tree in words, for its table and its drawing.
function leavesOf(term, w) {
  const found = [];
  const walk = (node, kept) => {
    const c = term.column[node];
    if (c < 0) {
      const told = (short) => kept.map((own, k) => (own.every(Boolean) ? null : `${clip(shortName(term.columns[k]), 24)} ${slotsText(term.axes[k], own, w, short, term.columns[k])}`)).filter(Boolean);
      found.push({ text: told(false).join("; ") || "…", short: told(true), value: term.values[node] });
      return;
    }
    for (const [next, goes] of [[term.left[node], (rank) => rank <= term.threshold[node]], [term.right[node], (rank) => rank > term.threshold[node]]]) {
      walk(next, kept.map((own, k) => (k === c ? own.map((here, slot) => here && goes(term.ranks[c][slot])) : own)));
    }
  };
  walk(0, term.axes.map((axis) => slotNames(axis, w).map(() => true)));
  return found;
}

function leavesShape(host, term, s, w) {
  const leaves = leavesOf(term, w);
  const { low, high } = rangeOf(leaves.map((leaf) => leaf.value[s]));
  const width = Math.max(240, host.clientWidth || 300), letters = Math.floor(width / 6.2);
  const px = (v) => 6 + (width - 72) * (v - low) / (high - low);
  const svg = draw("svg", { role: "img", "aria-label": term.columns.map((c) => clip(c, 40)).join(", ") });
  let y = 0;
  for (const leaf of leaves) {
    const value = leaf.value[s], lines = [""];
    for (const one of leaf.short.length ? leaf.short : ["…"]) { // conditions, as many on a line as fit
      const longer = lines[lines.length - 1] ? `${lines[lines.length - 1]}; ${one}` : one;
      if (longer.length <= letters || longer === one) lines[lines.length - 1] = longer; else lines.push(one);
    }
    for (const text of lines) { y += 14; svg.append(draw("text", { x: 2, y: y - 2 }, draw("title", {}, clip(leaf.text, 300)), clip(text, letters))); }
    svg.append(
      draw("rect", { x: Math.min(px(0), px(value)), y: y + 3, width: Math.max(Math.abs(px(value) - px(0)), 1), height: 11, rx: 2, fill: value >= 0 ? colour(0) : colour(1), "fill-opacity": 0.82 }),
      draw("text", { x: width - 4, y: y + 13, "text-anchor": "end" }, inSigned(value)));
    y += 22;
  }
  svg.setAttribute("viewBox", `0 0 ${width} ${y}`);
  return svg;
}

// Several terms of one number, such as a line and a curve: their sum.
function sumShape(host, terms, s, w) {
  const column = terms[0].columns[0], at = (x) => terms.reduce((sum, term) => sum + contribution(term, { [column]: x })[s], 0);
  const marks = terms.flatMap((term) => (term.kind === "line" ? [term.reach || [0, 1]].map((r) => [r[0], r[r.length - 1]]).flat() : term.axes[0].knots || term.axes[0].bounds));
  let low = Math.min(...marks), high = Math.max(...marks);
  const room = 0.06 * (high - low) || 1;
  low -= room; high += room;
  const jumps = terms.filter((term) => term.kind !== "line" && term.axes[0].kind === "intervals").flatMap((term) => term.axes[0].bounds);
  const xs = [low, high, ...marks, ...jumps.map((x) => x + 1e-9 * (high - low))].sort((a, b) => a - b);
  const points = xs.map((x) => [x, at(x)]);
  const f = frame(host, { height: 170, left: 46, label: column, x: { low, high, ...daysOf(column, low, high) }, y: rangeOf(points.map((p) => p[1])) });
  f.svg.append(zeroLine(f), path(points.map(([a, b]) => [f.px(a), f.py(b)]), { stroke: colour(0) }));
  return f.svg;
}

// A yes-or-no column has three parts, whatever the axis that reads it.
function switchShape(host, terms, s, w) {
  const cells = [1, 0, null], [term] = terms;
  const adds = (own, cell) => contribution(own, { [term.columns[0]]: cell });
  const values = cells.map((cell) => adds(term, cell).map((_, k) => terms.reduce((sum, own) => sum + adds(own, cell)[k], 0)));
  const axis = { kind: "categories", groups: [[w.yes]] };
  const hidden = term.mass && term.mass[term.mass.length - 1] > 0 ? 1 : 0;
  const named = { ...term, axes: [{ ...axis, other: w.no }], values, mass: [1, 1, term.mass ? hidden : 0] };
  return tableShape(host, named, s, w);
}

function drawTerm(host, term, s, w) {
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
    const answers = { 0: w.no, 1: w.yes };
    const names = slotNames(term.axes[0], w, term.columns[0]).map((name) => (term.switch && answers[name]) || name);
    heads = [w.t_part, w.t_rows, fill(w.t_rate, { name: clip(positive, 20) }), w.t_adds];
    rows = names.map((name, k) => [name, inPercent(term.mass[k]), term.rate[k] === null ? "" : inPercent(term.rate[k]), inSigned(term.values[k][s])]).slice(0, 200);
  }
  return el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...rows.map(([name, ...cells]) => el("tr", {}, el("th", { scope: "row" }, named(name, 60)), ...cells.map((cell) => el("td", {}, cell))))));
}

const isNumber = (term) => term.columns.length === 1 && !term.switch && term.kind !== "rules" && (term.kind === "line" || term.axes[0].kind !== "categories");

function variableFigure({ terms, importance }, choice, w, positive) {
  const [term] = terms, together = terms.length > 1 && terms.every(isNumber);
  const render = (at) => (term.switch ? switchShape(at, terms, choice.score, w) : together ? sumShape(at, terms, choice.score, w) : terms.map((own) => drawTerm(at, own, choice.score, w)));
  const host = el("div", {});
  const details = el("details", { class: "no-print" }, el("summary", {}, w.table_of));
  details.addEventListener("toggle", () => {
    if (details.open) details.replaceChildren(details.firstChild, ...terms.map((own) => el("div", { class: "scroll" }, partsTable(own, choice.score, w, positive))));
  });
  const name = el("bdi", { title: clip(term.columns.join(" × "), 400) }, term.columns.map((c) => clip(shortName(c), term.columns.length > 1 ? 24 : 44)).join(" × "));
  const node = el("figure", {}, el("figcaption", {}, name, el("small", {}, fill(w.effect, { value: inTwo(importance) }))), host, details);
  return { node, start: () => { choice.redraw.push(responsive(host, render)); } };
}

function modelPanel(host, data, w) {
  const { form, variables } = data.model;
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
    const made = places.map((own) => variableFigure({ ...own, terms: own.terms.map((t) => form.terms[t]) }, choice, w, data.positive));
    list.append(...made.map((m) => m.node));
    for (const m of made) m.start();
  };
  host.append(list);
  add(variables.slice(0, AT_FIRST));
  const rest = variables.slice(AT_FIRST);
  if (rest.length) {
    const more = el("button", { type: "button", id: "more-terms" }, fill(w.more_terms, { count: inWhole(rest.length) }));
    more.addEventListener("click", () => { more.remove(); add(rest); });
    host.append(el("div", { class: "row-end" }, more));
  }
}
