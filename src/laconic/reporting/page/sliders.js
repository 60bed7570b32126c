// Panel of the sliders: two for a threshold rule, one for each class otherwise; with many classes
// one at a time.

const MANY_CLASSES = 8;

function slider(id, label, low, high, start, onMove) {
  const input = el("input", { type: "range", id, min: low, max: high, step: 1, value: start });
  const shown = el("output", { for: id, id: `${id}-value` });
  input.addEventListener("input", onMove);
  const node = el("div", { class: "slider" }, el("label", { for: id }, ...label), shown, input);
  return { node, input, shown, step: () => Number(input.value) };
}

function say(slot, value, text, spoken) {
  show(slot.shown, value, text);
  slot.input.setAttribute("aria-valuetext", spoken || slot.shown.textContent);
}

function resetButton(w, sliders, onMove) {
  const button = el("button", { type: "button" }, w.reset);
  button.addEventListener("click", () => {
    for (const one of sliders) one.input.value = "0";
    onMove();
  });
  return el("div", { class: "row-end" }, button);
}

function figure(label, id, kind) {
  const output = el("output", { id });
  const note = el("small", {});
  return { node: el("div", { class: kind || "" }, el("span", {}, label), output, note), output, note };
}

function againstModel(w, rows, cost) {
  return rows.map(({ name, value, key, ours }) => {
    const paid = show(el("td", { id: `cost-${key}` }), value, inCost);
    const change = value / cost - 1;
    const known = !ours && cost > 0 && Number.isFinite(change);
    const text = known ? `${change >= 0 ? "+" : "\u2212"}${inPercent(Math.abs(change))}` : "";
    return el("tr", { class: ours ? "ours" : "" }, el("th", { scope: "row" }, named(name, 70)), paid,
      el("td", { class: known && change < -1e-12 ? "better" : "" }, text));
  });
}

function rulesTable(w) {
  const body = el("tbody", {});
  const table = el("table", { id: "rules-table" }, el("thead", {}, el("tr", {},
    ...[w.t_rule, w.t_cost, w.t_against].map((text) => el("th", { scope: "col" }, text)))), body);
  return { node: el("div", { class: "scroll" }, table), body };
}

function announceLater(text) {
  clearTimeout(announceLater.timer);
  announceLater.timer = setTimeout(() => { document.getElementById("live").textContent = text; }, 400);
}

function thresholdPanel(host, data, w, onRule) {
  const table = data.sliders, k = table.positive;
  const positive = clip(data.classes[k], 40), negative = clip(data.classes[1 - k], 40);
  const move = () => render();
  const ratio = slider("ratio", [fill(w.s_ratio, { name: positive })], -table.ratio_steps, table.ratio_steps, 0, move);
  const prior = slider("prior", [fill(w.s_prior, { name: positive })], -table.prior_steps, table.prior_steps, 0, move);
  const cost = figure(w.o_cost, "o-cost", "main");
  const money = UNIT.cases ? figure(w.o_money, "o-money", "main") : null;
  const threshold = figure(fill(w.o_threshold, { name: positive }), "o-threshold");
  const decided = figure(fill(w.o_decided, { name: positive }), "o-decided");
  const hits = figure(w.o_hits, "o-hits");
  const alarms = figure(w.o_false, "o-false_alarms");
  const missed = figure(w.o_missed, "o-missed");
  const rules = rulesTable(w);
  const topNote = el("p", { class: "small soft", id: "ceiling-note" });
  const safeNote = el("p", { class: "small soft", id: "safe-note" });
  const left = el("div", {}), right = el("div", {});
  host.replaceChildren(
    el("div", { class: "two" }, ratio.node, prior.node), resetButton(w, [ratio, prior], move),
    el("div", { class: "figures" }, ...[cost, money, threshold, decided, hits, alarms, missed].filter(Boolean).map((f) => f.node)),
    el("div", { class: "two" },
      el("figure", {}, el("figcaption", {}, w.c_threshold), left),
      el("figure", {}, el("figcaption", {}, w.c_prior), right)),
    rules.node, topNote, safeNote);
  const redraw = [
    responsive(left, (at) => costByThreshold(at, table, w, ratio.step(), prior.step())),
    responsive(right, (at) => costByMix(at, data, w, ratio.step(), prior.step())),
  ];

  function render() {
    const i = prior.step(), j = ratio.step();
    const now = play(table, j, i, 0);
    say(ratio, now.ratio, (v) => fill(w.s_ratio_unit, { value: inShort(v) }));
    say(prior, now.share, inPercent);
    show(cost.output, now.cost, inCost);
    cost.note.textContent = fill(w.between, { low: inTwo(now.cost_low), high: inTwo(now.cost_high) });
    show(threshold.output, now.threshold, inPercent);
    for (const [slot, key] of [[decided, "decided"], [hits, "hits"], [alarms, "false_alarms"], [missed, "missed"]]) {
      show(slot.output, scaled(now[key]), UNIT.cases ? inCount : inOne);
    }
    if (money) {
      show(money.output, now.cost * UNIT.cases, inMoney);
      money.note.textContent = fill(w.between, { low: inMoney(now.cost_low * UNIT.cases), high: inMoney(now.cost_high * UNIT.cases) });
    }
    const top = ceiling(table, j);
    const rows = [{ name: w.this_model, value: now.cost, key: "model", ours: true }];
    if (table.rules.length > 1) rows.push({ name: w.plain, value: play(table, j, i, 1).cost, key: "plain" });
    rows.push(
      { name: fill(w.always, { name: negative }), value: now.always_negative, key: "negative" },
      { name: fill(w.always, { name: positive }), value: now.always_positive, key: "positive" },
      { name: w.ceiling, value: top.cost, key: "ceiling" });
    rules.body.replaceChildren(...againstModel(w, rows, now.cost));
    topNote.textContent = fill(w.ceiling_note, { cut: inPercent(top.cut), cost: inCost(top.cost) });
    const safe = safeShares(table, j, top.cost);
    safeNote.textContent = safe === null ? w.safe_none
      : fill(w.safe_note, { name: positive, low: inPercent(safe[0]), high: inPercent(safe[1]) });
    for (const again of redraw) again();
    announceLater(`${w.o_cost}: ${inShort(now.cost)}. ${fill(w.o_threshold, { name: positive })}: ${inPercent(now.threshold)}.`);
    const odds = Math.exp(table.correction + table.step * i);
    const factors = k === 1 ? [1, odds] : [odds, 1];
    const costs = data.costs.map((row) => row.slice());
    costs[k][1 - k] = table.right[1] + now.ratio * table.false_alarm;
    if (j === 0) costs[k][1 - k] = data.costs[k][1 - k];
    onRule({ factors, costs });
  }
  render();
}

function costByThreshold(host, table, w, j, i) {
  const now = play(table, j, i, 0);
  const move = table.correction + table.step * i;
  const points = table.rules[0].cuts.map((cut, place) => {
    const [low, high] = classCosts(table, place, now.ratio, 0);
    return [sigmoid(logOdds(cut) + move), (1 - now.share) * low + now.share * high];
  }).filter(([at]) => at > 5e-5 && at < 0.9999);
  const most = Math.max(...points.map((p) => p[1]), now.cost) || 1;
  const xs = points.map((p) => p[0]);
  const f = frame(host, {
    height: 250, label: w.c_threshold,
    x: { low: Math.min(...xs, now.threshold), high: Math.max(...xs, now.threshold), warp: logOdds, ticks: SHARES, text: inPercent, label: w.c_threshold_x },
    y: { low: 0, high: most * 1.06 },
  });
  const inside = clipped(f);
  inside.append(path(points.map(([a, b]) => [f.px(a), f.py(b)]), { stroke: colour(0) }));
  f.svg.append(
    draw("line", { x1: f.px(now.threshold), x2: f.px(now.threshold), y1: f.py(0), y2: f.py(now.cost), stroke: "var(--alarm)", "stroke-dasharray": "3 3" }),
    draw("circle", { cx: f.px(now.threshold), cy: f.py(now.cost), r: 5.5, fill: "var(--alarm)" }));
  return f.svg;
}

function costByMix(host, data, w, j, i) {
  const table = data.sliders, k = table.positive;
  const positive = clip(data.classes[k], 30), negative = clip(data.classes[1 - k], 30);
  const steps = Array.from({ length: 2 * table.prior_steps + 1 }, (_, s) => s - table.prior_steps);
  const along = (rule) => steps.map((s) => { const at = play(table, j, s, rule); return [at.share, at.cost]; });
  const now = play(table, j, i, 0), top = ceiling(table, j);
  const adapts = along(0);
  const [low, high] = classCosts(table, table.ratio_steps + table.prior_steps, now.ratio, 0);
  const lines = [
    { text: fill(w.always, { name: negative }), stroke: "var(--soft)", dash: "2 4", points: steps.map((s) => { const at = play(table, j, s, 0); return [at.share, at.always_negative]; }) },
    { text: fill(w.always, { name: positive }), stroke: "var(--soft)", dash: "7 4", points: steps.map((s) => { const at = play(table, j, s, 0); return [at.share, at.always_positive]; }) },
    { text: w.ceiling, stroke: "var(--alarm)", dash: "9 3 2 3", points: [[adapts[0][0], top.cost], [adapts[adapts.length - 1][0], top.cost]] },
    { text: w.stays, stroke: colour(0), dash: "4 3", points: adapts.map(([share]) => [share, (1 - share) * low + share * high]) },
    { text: w.adapts, stroke: colour(0), points: adapts },
  ];
  if (table.rules.length > 1) lines.splice(3, 0, { text: w.plain, stroke: colour(1), points: along(1) });
  const most = Math.max(top.cost, now.cost, ...adapts.map((p) => p[1])) * 1.25 || 1;
  const f = frame(host, {
    height: 250, label: w.c_prior,
    x: { low: adapts[0][0], high: adapts[adapts.length - 1][0], warp: logOdds, ticks: SHARES, text: inPercent, label: fill(w.c_prior_x, { name: positive }) },
    y: { low: 0, high: most },
  });
  const inside = clipped(f);
  for (const line of lines) {
    inside.append(path(line.points.map(([a, b]) => [f.px(a), f.py(b)]), { stroke: line.stroke, "stroke-dasharray": line.dash }));
  }
  f.svg.append(draw("circle", { cx: f.px(now.share), cy: f.py(now.cost), r: 5.5, fill: "var(--alarm)" }));
  return [f.svg, legend(lines.slice().reverse())];
}

function mixPanel(host, data, w, onRule) {
  const table = data.mix, many = data.classes.length;
  const move = () => render();
  const few = many <= MANY_CLASSES;
  const sliders = data.classes.map((name, k) =>
    slider(`share-${k}`, [fill(w.s_share_of, { name: clip(name, 40) })], -table.steps, table.steps, 0, move));
  const place = el("div", {});
  const pick = (k) => place.replaceChildren(sliders[k].node);
  const chosen = few ? null : chooser("share-class", w.s_which_share, data.classes, pick);
  if (chosen) {
    const start = data.classes.indexOf(data.positive);
    chosen.querySelector("select").value = String(start);
    pick(start);
  }
  const priced = data.cost_sliders ? costSlider(data, w, move) : null;
  const cost = figure(w.o_cost, "o-cost", "main");
  const money = UNIT.cases ? figure(w.o_money, "o-money", "main") : null;
  const worst = figure(w.t_worst, "o-worst");
  const rules = rulesTable(w);
  const body = el("tbody", {});
  const classes = el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {},
    ...[w.t_class, w.t_share, w.t_risk, w.t_decided].map((text) => el("th", { scope: "col" }, text)))), body));
  host.replaceChildren(
    few ? el("div", { class: "sliders-many" }, ...sliders.map((s) => s.node)) : el("div", { class: "two" }, chosen, place),
    priced ? priced.node : "",
    resetButton(w, priced ? [...sliders, priced.slider] : sliders, move),
    el("div", { class: "figures" }, ...[cost, money, worst].filter(Boolean).map((f) => f.node)), el("div", { class: "two" }, classes, rules.node));

  function render() {
    const own = priced ? priced.read() : { table, costs: data.costs };
    const now = mix(own.table, sliders.map((s) => s.step()));
    sliders.forEach((s, k) => say(s, now.shares[k], inPercent));
    show(cost.output, now.cost, inCost);
    if (money) show(money.output, now.cost * UNIT.cases, inMoney);
    const bad = now.risks.indexOf(Math.max(...now.risks));
    show(worst.output, now.risks[bad], inCost);
    worst.note.replaceChildren(named(data.classes[bad], 40));
    body.replaceChildren(...now.decided.map((count, d) => el("tr", {},
      el("th", { scope: "row" }, d < many ? named(data.classes[d], 40) : w.abstained),
      el("td", {}, d < many ? inPercent(now.shares[d]) : ""),
      d < many ? show(el("td", { id: `risk-${d}` }), now.risks[d], inCost) : el("td", {}),
      show(el("td", { id: `decided-${d}` }), scaled(count), UNIT.cases ? inCount : inOne))));
    rules.body.replaceChildren(...againstModel(w, [
      { name: w.this_model, value: now.cost, key: "model", ours: true },
      ...now.always.map((value, d) => ({ name: fill(w.always, { name: clip(data.classes[d], 40) }), value, key: `always-${d}` }))
        .filter(({ value }) => few || value === Math.min(...now.always)),
    ], now.cost));
    announceLater(`${w.o_cost}: ${inShort(now.cost)}.`);
    onRule({ factors: data.prior_factors, costs: own.costs });
  }
  render();
}

// Errors on one class, chosen, cost more or less: the rule follows, counted on the measured rows.
function costSlider(data, w, move) {
  const { steps, step, counts } = data.cost_sliders, many = data.classes.length;
  const label = el("span", {});
  const one = slider("errors", [label], -steps, steps, 0, move);
  let k = data.classes.indexOf(data.positive);
  const choice = chooser("errors-class", w.s_which, data.classes, (next) => { k = next; move(); });
  choice.querySelector("select").value = String(k);
  const read = () => {
    const factor = Math.exp(step * one.step());
    label.textContent = fill(w.s_errors, { name: clip(data.classes[k], 40) });
    say(one, factor, (v) => fill(w.s_times, { value: inShort(Number(v.toPrecision(3))) }));
    const dearer = (rows) => rows.map((row, r) => (r === k ? row.map((c, d) => (d < many ? c * factor : c)) : row));
    const rates = counts[k][steps + one.step()].map((row, r) => row.map((c) => c / Math.max(data.mix.rows[r], 1)));
    return { table: { ...data.mix, rates, costs: dearer(data.mix.costs) }, costs: dearer(data.costs) };
  };
  return { node: el("div", { class: "two errors" }, choice, one.node), slider: one, read };
}
