// The model and the sliders, computed as Python computes them: same operations, same order.

function play(table, ratioStep, priorStep, rule) {
  const counts = table.rules[rule];
  const cut = table.ratio_steps + table.prior_steps + ratioStep + priorStep;
  const ratio = table.ratio * Math.exp(table.step * ratioStep);
  const odds = (table.share / (1 - table.share)) * Math.exp(table.step * priorStep);
  const share = priorStep === 0 ? table.share : odds / (1 + odds);
  const alarmRate = counts.alarms[cut] / table.rows[0];
  const hitRate = counts.hits[cut] / table.rows[1];
  const risks = classCosts(table, cut, ratio, rule);
  const miss = ratio * table.false_alarm;
  const [low, high] = costLimits(table, counts, cut, miss, table.drawn && priorStep === 0 ? null : share);
  const [rightNegative, rightPositive] = table.right;
  return {
    ratio, share, place: cut,
    threshold: 1 / (1 + ratio),
    cut: counts.cuts[cut],
    decided: 1000 * (share * hitRate + (1 - share) * alarmRate),
    hits: 1000 * share * hitRate,
    missed: 1000 * share * (1 - hitRate),
    false_alarms: 1000 * (1 - share) * alarmRate,
    cost: (1 - share) * risks[0] + share * risks[1],
    cost_low: low,
    cost_high: high,
    always_negative: (1 - share) * rightNegative + share * (rightPositive + miss),
    always_positive: (1 - share) * (rightNegative + table.false_alarm) + share * rightPositive,
  };
}

// Interval of a mean cost, as laconic/decide/intervals.py explains it.
function costLimits(table, counts, cut, miss, share) {
  const [negative, positive] = table.rows;
  const alarms = counts.alarms[cut], hits = counts.hits[cut];
  const paid = [
    [table.right[0], table.right[0] + table.false_alarm],
    [table.right[1] + miss, table.right[1]]];
  const seen = [[negative - alarms, alarms], [positive - hits, hits]];
  const mix = share === null ? null : [1 - share, share];
  const least = paid.map((row) => (mix ? Math.min(...row) : Math.min(...paid.flat())));
  const floor = mix ? mix[0] * least[0] + mix[1] * least[1] : least[0];
  const most = mix ? mix[0] * Math.max(...paid[0]) + mix[1] * Math.max(...paid[1]) : Math.max(...paid.flat());
  const cells = [];
  for (const k of [0, 1]) {
    for (const d of [0, 1]) {
      const weight = (mix ? mix[k] : 1) * (paid[k][d] - least[k]);
      const all = mix ? table.rows[k] : negative + positive, rows = all / (table.repeats || 1);
      const same = mix ? undefined : cells.find((cell) => cell.weight === weight);
      if (same) same.rate += seen[k][d] / all;
      else if (weight > 0) cells.push({ weight, rate: seen[k][d] / all, rows });
    }
  }
  const [low, high] = sumLimits(cells);
  return [floor + low, Math.min(floor + high, most)];
}

const Z = 1.959963984540054;

function rateLimits(p, n) {
  const scale = 2 * (n + Z * Z);
  const down = Math.max(Z * Z - 2 - 1 / n + 4 * p * (n * (1 - p) + 1), 0);
  const up = Math.max(Z * Z + 2 - 1 / n + 4 * p * (n * (1 - p) - 1), 0);
  const low = (2 * n * p + Z * Z - 1 - Z * Math.sqrt(down)) / scale;
  const high = (2 * n * p + Z * Z + 1 + Z * Math.sqrt(up)) / scale;
  return [p > 0 ? Math.min(Math.max(low, 0), p) : 0, p < 1 ? Math.min(Math.max(high, p), 1) : 1];
}

function sumLimits(cells) {
  let mean = 0, below = 0, above = 0, variance = 0;
  for (const { weight, rate, rows } of cells) {
    const [low, high] = rateLimits(rate, rows);
    mean += weight * rate;
    below += (weight * (rate - low)) ** 2;
    above += (weight * (high - rate)) ** 2;
    variance += weight ** 2 * rate * (1 - rate) / rows;
  }
  if (mean <= 0) return [0, Math.sqrt(above)];
  const spread = variance / mean ** 2;
  const gamma = mean * Math.max(1 - spread / 9 - Z * Math.sqrt(spread) / 3, 0) ** 3;
  return [Math.min(mean - Math.sqrt(below), gamma), mean + Math.sqrt(above)];
}

function classCosts(table, cut, ratio, rule) {
  const counts = table.rules[rule];
  const alarmRate = counts.alarms[cut] / table.rows[0];
  const hitRate = counts.hits[cut] / table.rows[1];
  return [
    table.right[0] + table.false_alarm * alarmRate,
    table.right[1] + ratio * table.false_alarm * (1 - hitRate),
  ];
}

function ceiling(table, ratioStep) {
  const ratio = table.ratio * Math.exp(table.step * ratioStep);
  const cuts = table.rules[0].cuts;
  let best = { cost: Infinity, cut: null, place: 0 };
  for (let place = 0; place < cuts.length; place += 1) {
    const cost = Math.max(...classCosts(table, place, ratio, 0));
    if (cost < best.cost) best = { cost, cut: cuts[place], place };
  }
  return best;
}

// Shares of the positive class between which the unmoved threshold costs at most the ceiling.
function safeShares(table, ratioStep, top) {
  const ratio = table.ratio * Math.exp(table.step * ratioStep);
  const [low, high] = classCosts(table, table.ratio_steps + table.prior_steps, ratio, 0);
  if (low <= top && high <= top) return [0, 1];
  if (low > top && high > top) return null;
  const crossing = (top - low) / (high - low);
  return low <= top ? [0, crossing] : [crossing, 1];
}

function mix(table, steps) {
  const weights = table.shares.map((share, k) => share * Math.exp(table.step * steps[k]));
  const total = weights.reduce((a, b) => a + b, 0);
  const shares = weights.map((weight) => weight / total);
  const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);
  const column = (d) => table.rates.map((rates) => rates[d]);
  const risks = table.rates.map((rates, k) => dot(rates, table.costs[k]));
  return {
    shares, risks,
    cost: dot(shares, risks),
    decided: table.costs[0].map((_, d) => 1000 * dot(shares, column(d))),
    always: shares.map((_, d) => dot(shares, table.costs.map((costs) => costs[d]))),
  };
}

// First place whose value is >= x (left) or > x (right).
function firstPlace(sorted, x, right) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (right ? sorted[middle] <= x : sorted[middle] < x) low = middle + 1; else high = middle;
  }
  return low;
}

// A cell is a number, a text, or null for missing; a place is [slot, way towards the next].
function placeOn(axis, cell) {
  if (axis.kind === "categories") {
    if (cell === null) return [axis.groups.length + 1, 0];
    const slot = axis.groups.findIndex((texts) => texts.includes(cell));
    return [slot < 0 ? axis.groups.length : slot, 0];
  }
  if (axis.kind === "intervals") {
    const own = axis.specials || [];
    if (cell === null) return [axis.bounds.length + own.length + 1, 0];
    const special = own.lastIndexOf(cell);
    if (special >= 0) return [axis.bounds.length + 1 + special, 0];
    return [firstPlace(axis.bounds, cell, false), 0];
  }
  const { knots, specials } = axis;
  if (cell === null) return [knots.length + specials.length, 0];
  const special = specials.indexOf(cell);
  if (special >= 0) return [knots.length + special, 0];
  if (knots.length < 2) return [0, 0];
  const inside = Math.min(Math.max(cell, knots[0]), knots[knots.length - 1]);
  const slot = Math.min(Math.max(firstPlace(knots, inside, true) - 1, 0), knots.length - 2);
  const low = knots[slot], high = knots[slot + 1];
  if (Number.isFinite(high - low)) return [slot, (inside - low) / (high - low)];
  return [slot, (0.5 * inside - 0.5 * low) / (0.5 * high - 0.5 * low)];
}

function between(values, [slot, way]) {
  const after = values[Math.min(slot + 1, values.length - 1)];
  return values[slot].map((value, s) => (1 - way) * value + way * after[s]);
}

function contribution(term, cells) {
  const cell = cells[term.columns[0]];
  if (term.kind === "line") {
    if (cell === null) return term.missing;
    return term.slope.map((slope) => (cell - term.origin) * slope);
  }
  if (term.kind === "rules") {
    const ranks = term.axes.map((axis, c) => term.ranks[c][placeOn(axis, cells[term.columns[c]])[0]]);
    let node = 0;
    while (term.column[node] >= 0) {
      node = ranks[term.column[node]] <= term.threshold[node] ? term.left[node] : term.right[node];
    }
    return term.values[node];
  }
  const first = placeOn(term.axes[0], cell);
  if (term.axes.length === 1) return between(term.values, first);
  const second = placeOn(term.axes[1], cells[term.columns[1]]);
  const [slot, way] = first;
  const low = between(term.values[slot], second);
  const high = between(term.values[Math.min(slot + 1, term.values.length - 1)], second);
  return low.map((value, s) => (1 - way) * value + way * high[s]);
}

const sigmoid = (z) => (z >= 0 ? 1 / (1 + Math.exp(-z)) : Math.exp(z) / (1 + Math.exp(z)));
const logOdds = (p) => Math.log(p / (1 - p));

function normalised(values) {
  const total = values.reduce((a, b) => a + b, 0);
  return values.map((value) => value / total);
}

function softmax(scores) {
  const top = Math.max(...scores);
  return normalised(scores.map((score) => Math.exp(score - top)));
}

function ofVotes(scores, calibration) {
  const shares = scores.map((score, s) => {
    const vote = Math.min(Math.max(Math.round(score * 1e12) / 1e12, -1), 1);
    if (!calibration) return (1 + vote) / 2;
    const inside = Math.min(Math.max(vote, -0.9995), 0.9995);
    return sigmoid(2 * Math.atanh(inside) * calibration[s][0] + calibration[s][1]);
  });
  if (shares.length === 1) return [1 - shares[0], shares[0]];
  const total = shares.reduce((a, b) => a + b, 0);
  return total > 1e-9 ? shares.map((s) => s / total) : shares.map(() => 1 / shares.length);
}

function probabilities(form, scores) {
  let found;
  if (form.link === "logit") found = [sigmoid(-scores[0]), sigmoid(scores[0])];
  else if (form.link === "softmax") found = softmax(scores);
  else if (form.link === "ovr") {
    found = softmax(scores.map((z) => (z > 0 ? -Math.log1p(Math.exp(-z)) : z - Math.log1p(Math.exp(z)))));
  } else if (form.link === "points") {
    const table = form.calibration, place = Math.round(scores[0] - table[0][0]);
    const odds = table[Math.min(Math.max(place, 0), table.length - 1)][1];
    found = [sigmoid(-odds), sigmoid(odds)];
  } else found = ofVotes(scores, form.calibration);
  const h = form.smoothing || 0;
  return h ? found.map((p) => (p + h / found.length) / (1 + h)) : found;
}

function scoreOf(form, cells) {
  const parts = form.terms.map((term) => contribution(term, cells));
  const scores = form.intercept.map((start, s) => parts.reduce((sum, part) => sum + part[s], start));
  return { parts, scores, raw: probabilities(form, scores) };
}

// Probabilities once the odds of the classes moved by these factors.
const corrected = (raw, factors) => normalised(raw.map((p, k) => p * factors[k]));

// The decision of least expected cost; the first of equals; null for an abstention.
function decide(proba, costs, rejectCost) {
  const paid = costs[0].map((_, d) => proba.reduce((sum, p, k) => sum + p * costs[k][d], 0));
  let best = 0;
  for (let d = 1; d < paid.length; d += 1) if (paid[d] < paid[best]) best = d;
  const abstains = rejectCost !== null && paid[best] > rejectCost;
  return { best: abstains ? null : best, paid };
}
