// Panel of the capacity: how many are caught when only some cases can be looked at.

function capacityPanel(host, data, w) {
  const table = data.capacity;
  if (!host || !table) return;
  const positive = clip(data.positive, 40);
  const whole = UNIT.cases || 1000, last = table.shares.length - 1;
  const chosen = slider("capacity-step", [w.s_capacity], 0, last, table.start, () => render());
  const caught = figure(fill(w.o_caught, { name: positive }), "o-caught", "main");
  const right = figure(fill(w.o_right, { name: positive }), "o-right");
  const found = figure(fill(w.o_found, { name: positive }), "o-found");
  const lift = figure(w.o_lift, "o-lift");
  const drawing = el("div", {});
  host.append(chosen.node, el("div", { class: "figures" }, ...[caught, right, found, lift].map((f) => f.node)),
    el("figure", {}, el("figcaption", {}, w.c_capacity), drawing));
  const redraw = responsive(drawing, (at) => caughtDrawing(at, table, w, chosen.step()));

  function render() {
    const step = chosen.step(), share = table.shares[step], hits = table.caught[step];
    const text = UNIT.cases ? w.s_capacity_per : w.s_capacity_unit;
    say(chosen, share, (v) => fill(text, { count: inCount(v * whole), all: inWhole(whole) }));
    show(caught.output, hits, inPercent);
    show(right.output, hits * table.base / share, inPercent);
    show(found.output, hits * table.base * whole, inCount);
    show(lift.output, hits / share, inThree);
    redraw();
    announceLater(`${fill(w.o_caught, { name: positive })}: ${inPercent(hits)}.`);
  }
  render();
}

function caughtDrawing(host, table, w, step) {
  const f = frame(host, {
    height: 260, label: w.c_capacity,
    x: { low: 0, high: 1, warp: Math.sqrt, ticks: [0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1], text: inPercent, label: w.c_capacity_x },
    y: { low: 0, high: 1, ticks: [0, 0.25, 0.5, 0.75, 1], text: inPercent },
  });
  const points = [[0, 0], ...table.shares.map((share, k) => [share, table.caught[k]])];
  const [share, hits] = [table.shares[step], table.caught[step]];
  f.svg.append(
    path(points.map(([a]) => [f.px(a), f.py(a)]), { stroke: "var(--soft)", "stroke-dasharray": "4 4", "stroke-width": 1.2 }),
    path(points.map(([a, b]) => [f.px(a), f.py(b)]), { stroke: colour(0) }),
    draw("line", { x1: f.px(share), x2: f.px(share), y1: f.py(0), y2: f.py(hits), stroke: "var(--alarm)", "stroke-dasharray": "3 3" }),
    draw("circle", { cx: f.px(share), cy: f.py(hits), r: 5.5, fill: "var(--alarm)" }));
  return [f.svg, legend([{ text: w.this_model, stroke: colour(0) }, { text: w.at_random, stroke: "var(--soft)", dash: "4 4" }])];
}
