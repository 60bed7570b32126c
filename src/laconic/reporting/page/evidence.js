// Panels that show evidence: reliability, candidates, the map of rows.

function reliabilityDrawing(host, bins, w, { low, high, zone, threshold, label }) {
  const seen = bins.predicted.map((p, b) => b).filter((b) => bins.predicted[b] >= low && bins.predicted[b] <= high);
  const top = Math.max(high, ...seen.map((b) => bins.upper[b]));
  const f = frame(host, {
    height: 270, label,
    x: { low, high, text: inPercent, label: w.x_predicted },
    y: { low: Math.min(low, ...seen.map((b) => bins.lower[b])), high: top, text: inPercent },
  });
  const inside = clipped(f);
  if (zone) {
    const [a, b] = zone.map((p) => f.px(Math.min(Math.max(p, low), high)));
    inside.append(draw("rect", { x: a, y: f.box.top, width: Math.max(b - a, 1.5), height: f.reach.y, fill: "var(--zone)", "fill-opacity": 0.4 }));
  }
  inside.append(path([[f.px(low), f.py(low)], [f.px(high), f.py(high)]], { stroke: "var(--soft)", "stroke-width": 1.2, "stroke-dasharray": "4 4" }));
  if (threshold !== undefined) {
    inside.append(draw("line", { x1: f.px(threshold), x2: f.px(threshold), y1: f.box.top, y2: f.height - f.box.bottom, stroke: "var(--alarm)", "stroke-width": 1.3 }));
  }
  const band = seen.map((b) => [f.px(bins.predicted[b]), f.py(bins.upper[b])])
    .concat(seen.slice().reverse().map((b) => [f.px(bins.predicted[b]), f.py(bins.lower[b])]));
  if (seen.length > 1) inside.append(draw("polygon", { points: band.map((p) => p.join(",")).join(" "), fill: colour(0), "fill-opacity": 0.13 }));
  inside.append(path(seen.map((b) => [f.px(bins.predicted[b]), f.py(bins.observed[b])]), { stroke: colour(0) }));
  for (const b of seen) {
    const at = f.px(bins.predicted[b]);
    inside.append(
      draw("line", { x1: at, x2: at, y1: f.py(bins.lower[b]), y2: f.py(bins.upper[b]), stroke: colour(0), "stroke-width": 1.4 }),
      draw("circle", { cx: at, cy: f.py(bins.observed[b]), r: 4, fill: colour(0) }));
  }
  return f.svg;
}

function trustPanel(host, data, w) {
  if (!data.reliability.length) return;
  const body = el("div", { class: "panel two" });
  const render = (panel) => {
    const { bins } = panel;
    const most = Math.min(1, Math.max(...bins.predicted, ...bins.upper, panel.threshold || 0) * 1.04);
    const all = el("div", {});
    const kids = [el("figure", {}, el("figcaption", {}, w.trust_all), all)];
    let near = null;
    if (panel.zone_bins) {
      near = el("div", {});
      kids.push(el("figure", {}, el("figcaption", {}, w.trust_near), near));
    }
    body.replaceChildren(...kids);
    responsive(all, (at) => reliabilityDrawing(at, bins, w, { low: 0, high: most, zone: panel.zone, threshold: panel.threshold, label: w.trust_all }));
    if (near) {
      const [low, high] = panel.zone, room = 0.06 * (high - low);
      responsive(near, (at) => reliabilityDrawing(at, panel.zone_bins, w, { low: Math.max(0, low - room), high: Math.min(1, high + room), zone: panel.zone, threshold: panel.threshold, label: w.trust_near }));
    }
  };
  if (data.reliability.length > 1) {
    host.append(chooser("trust-class", w.choose_class, data.reliability.map((p) => data.classes[p.class]), (k) => render(data.reliability[k])));
  }
  host.append(body);
  render(data.reliability[0]);
}

function chooser(id, label, names, onChoice) {
  const select = el("select", { id }, ...names.map((name, k) => el("option", { value: k }, clip(name, 50))));
  select.addEventListener("change", () => onChoice(Number(select.value)));
  return el("div", { class: "choose no-print" }, el("label", { for: id }, label), select);
}

function sizePanel(host, data, w) {
  const table = data.comparison;
  if (!host || !table) return;
  const known = table.candidate.map((_, c) => c).filter((c) => table.cost[c] !== null && table.size[c] !== null);
  if (!known.length) return;
  const size = (c) => Math.max(Number(table.size[c]), 1);
  const error = (c) => (table.cost_se && table.cost_se[c]) || 0;
  responsive(host, (at) => {
    const low = Math.min(...known.map(size)), high = Math.max(...known.map(size));
    const bottom = Math.min(...known.map((c) => table.cost[c] - error(c)));
    const top = Math.max(...known.map((c) => table.cost[c] + error(c)));
    const room = (top - bottom) * 0.12 || 0.1;
    const f = frame(at, {
      height: 290, label: w.h_size,
      x: { low: low / 1.4, high: high * 1.9, warp: Math.log, ticks: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 1e4, 1e5], label: w.x_size },
      y: { low: Math.max(0, bottom - room), high: top + room },
    });
    const taken = known.map((c) => ({ own: c, x: f.px(size(c)) - 5, y: f.py(table.cost[c]) - 5, w: 10, h: 10 }));
    for (const c of known.slice().sort((a, b) => Number(!!(table.chosen && table.chosen[b])) - Number(!!(table.chosen && table.chosen[a])))) {
      const chosen = !!(table.chosen && table.chosen[c]);
      const x = f.px(size(c)), y = f.py(table.cost[c]), stroke = chosen ? colour(0) : "var(--soft)";
      f.svg.append(
        draw("line", { x1: x, x2: x, y1: f.py(table.cost[c] - error(c)), y2: f.py(table.cost[c] + error(c)), stroke, "stroke-width": 1.5 }),
        draw("circle", { cx: x, cy: y, r: chosen ? 7 : 5, fill: stroke }));
      const text = clip(table.candidate[c], 26) + (chosen ? ` (${w.chosen})` : "");
      const wide = text.length * (chosen ? 7.1 : 6.4), clear = (box) => box.x > f.box.left && box.x + wide < f.width
        && !taken.some((t) => t.own !== c && t.x < box.x + box.w && box.x < t.x + t.w && t.y < box.y + box.h && box.y < t.y + t.h);
      const spots = [[x + 11, y], [x - 11 - wide, y], [x + 9, y - 15], [x + 9, y + 15], [x - 9 - wide, y - 15]]
        .map(([a, b]) => ({ x: a, y: b - 8, w: wide, h: 14 }));
      const box = spots.find(clear) || (chosen ? spots[2] : null);
      if (!box) continue;
      taken.push(box);
      f.svg.append(draw("text", { x: box.x, y: box.y + 12, class: chosen ? "beside strong" : "beside" }, text));
    }
    return f.svg;
  });
}

function mapPanel(host, data, w) {
  const map = data.map;
  if (!host || !map || !map.x) return;
  // two classes: the positive one stands out
  const paint = (k) => (data.classes.length > 2 ? colour(k) : colour(data.classes[k] === data.positive ? 1 : 0));
  const drawing = el("div", {});
  const edges = (values) => {
    const sorted = values.slice().sort((a, b) => a - b);
    const at = (q) => sorted[Math.round(q * (sorted.length - 1))];
    const room = (at(0.995) - at(0.005)) * 0.12 || 1;
    return [at(0.005) - room, at(0.995) + room];
  };
  const [xl, xh] = edges(map.x), [yl, yh] = edges(map.y);
  const inside = (v, low, high) => Math.min(Math.max(v, low), high);
  const beyond = map.x.some((v, r) => v < xl || v > xh || map.y[r] < yl || map.y[r] > yh);
  const order = map.x.map((_, r) => r);
  const rows = data.mix.rows;
  order.sort((a, b) => rows[map.truth[b]] - rows[map.truth[a]]); // rare classes on top
  responsive(drawing, (at) => {
    const axis = (k) => fill(w.map_axis, { number: k + 1, share: inPercent(map.variance[k]) });
    const f = frame(at, { height: Math.min(460, Math.max(300, at.clientWidth * 0.6)), label: w.h_map, left: 40, x: { low: xl, high: xh, label: axis(0) }, y: { low: yl, high: yh } });
    const radius = map.x.length > 500 ? 2.4 : 3.2;
    const already = new Map(); // rows at one place are spread into a disc, like seeds of a sunflower
    for (const r of order) {
      const place = `${map.x[r]} ${map.y[r]}`, before = already.get(place) || 0;
      already.set(place, before + 1);
      const away = 1.05 * radius * Math.sqrt(before), turn = 2.399963 * before;
      // nothing is cut: a row far outside stands on the edge
      const cx = inside(f.px(inside(map.x[r], xl, xh)) + away * Math.cos(turn), f.box.left, f.width - f.box.right);
      const cy = inside(f.py(inside(map.y[r], yl, yh)) + away * Math.sin(turn), f.box.top, f.height - f.box.bottom);
      f.svg.append(draw("circle", {
        cx: cx.toFixed(1), cy: cy.toFixed(1), r: radius, fill: paint(map.truth[r]), "fill-opacity": 0.6,
        stroke: map.doubt[r] ? "var(--zone-ink)" : null, "stroke-width": map.doubt[r] ? 1 : null,
      }));
    }
    return f.svg;
  });
  const entries = data.classes.slice(0, 14).map((name, k) => ({ text: named(name, 40), stroke: paint(k), dot: true }));
  if (map.doubt.some(Boolean)) entries.push({ text: w.gray, stroke: "var(--zone-ink)", dot: true, ring: true });
  host.append(drawing, legend(entries));
  if (beyond) host.append(el("p", { class: "small soft" }, w.map_edge));
  host.append(el("p", { class: "small soft" }, fill(w.map_arrows, { names: map.arrows.map((a) => `\u2068${clip(a[0], 30)}\u2069`).join(", ") })));
}
