// Panel "what if": a case described in a form, scored in the page.

const FIELDS_AT_FIRST = 12;
const MOST_OPTIONS = 120;

const inOwn = (number) => (LANGUAGE === "fr" ? String(number).replace(".", ",") : String(number));

function fieldOf(column, place, w, onChange) {
  const id = `cell-${place}`;
  let input, read;
  if (column.kind === "boolean") {
    input = el("select", { id }, el("option", { value: "" }, w.missing), el("option", { value: "1" }, w.yes), el("option", { value: "0" }, w.no));
    read = () => (input.value === "" ? null : Number(input.value));
    input.value = column.start === null ? "" : String(column.start);
  } else if (column.kind === "categorical" && column.texts.length <= MOST_OPTIONS) {
    const texts = column.texts;
    input = el("select", { id }, ...texts.map((text, k) => el("option", { value: k }, clip(text, 60))),
      el("option", { value: "other" }, w.other), el("option", { value: "" }, w.missing));
    // any text that no group holds reads the slot of the others
    read = () => (input.value === "" ? null : input.value === "other" ? `${texts.join("")}?` : texts[Number(input.value)]);
    const start = texts.indexOf(column.start);
    input.value = start >= 0 ? String(start) : column.start === null ? "" : "other";
  } else if (column.kind === "categorical") {
    input = el("input", { id, type: "text", value: column.start === null ? "" : column.start, autocomplete: "off" });
    read = () => (input.value === "" ? null : input.value);
  } else if (isDays(column.name)) {
    input = el("input", { id, type: "date", value: column.start === null ? "" : inDays(column.start) });
    read = () => (input.value === "" ? null : (Date.parse(input.value) - REFERENCE) / DAY);
  } else {
    input = el("input", { id, type: "text", inputmode: "decimal", value: column.start === null ? "" : inOwn(column.start), autocomplete: "off" });
    read = () => {
      const text = input.value.trim().replace(",", ".");
      const value = text === "" ? null : Number(text);
      const bad = value !== null && !Number.isFinite(value);
      input.setAttribute("aria-invalid", bad ? "true" : "false");
      return bad ? undefined : value;
    };
  }
  input.addEventListener("input", onChange);
  return { node: el("div", { class: "field" }, el("label", { for: id }, named(shortName(column.name), 60)), input), read };
}

function reasonRow(name, value, most) {
  const wide = 34 * Math.abs(value) / (most || 1);
  const bar = draw("svg", { viewBox: "0 0 70 10", "aria-hidden": "true" },
    draw("line", { class: "axis", x1: 35, x2: 35, y1: 0, y2: 10 }),
    draw("rect", { x: value < 0 ? 35 - wide : 35, y: 1.5, width: Math.max(wide, 0.5), height: 7, rx: 1.5, fill: value < 0 ? colour(1) : colour(0) }));
  return el("li", {}, named(name, 60), bar, show(el("span", { class: "tabular" }), value, inSigned));
}

function whatIfPanel(host, data, w) {
  const { form, columns, order, variables } = data.model;
  const many = data.classes.length;
  let rule = null;
  const importance = (name) => order.findIndex((t) => form.terms[t].columns.includes(name));
  const places = columns.map((_, c) => c).sort((a, b) => importance(columns[a].name) - importance(columns[b].name));
  const change = () => render();
  const fields = columns.map((column, c) => fieldOf(column, c, w, change));
  const nodes = places.map((c) => fields[c].node);
  nodes.slice(FIELDS_AT_FIRST).forEach((node) => node.classList.add("hidden"));
  const says = el("output", { class: "says", id: "w-decision" });
  const probs = el("table", { class: "probs" });
  const score = el("output", { id: "w-score" });
  const reasons = el("ul", { class: "reasons", id: "w-reasons" });
  const towards = el("p", { class: "small soft" });
  const wrong = el("p", { class: "small soft", role: "status", id: "w-wrong" });
  const kids = [el("div", { class: "fields" }, ...nodes)];
  if (nodes.length > FIELDS_AT_FIRST) {
    const more = el("button", { type: "button", id: "more-fields" }, fill(w.w_more, { count: inWhole(nodes.length) }));
    more.addEventListener("click", () => { nodes.forEach((node) => node.classList.remove("hidden")); more.remove(); });
    kids.push(el("div", { class: "row-end" }, more));
  }
  kids.push(wrong, el("div", { class: "answer", "aria-live": "polite" },
    el("div", {}, el("span", { class: "soft small" }, w.w_decision), el("div", {}, says), probs,
      el("p", { class: "small soft" }, `${w.w_score} `, score)),
    el("div", {}, el("h3", {}, w.w_reasons), reasons, towards)));
  host.append(...kids);

  function render() {
    if (rule === null) return;
    const cells = Object.create(null);
    for (let c = 0; c < columns.length; c += 1) {
      const cell = fields[c].read();
      if (cell === undefined) { wrong.textContent = fill(w.w_bad, { name: clip(shortName(columns[c].name), 60) }); return; }
      cells[columns[c].name] = cell;
    }
    wrong.textContent = "";
    const found = scoreOf(form, cells);
    // a score of two classes is that of the positive one, which may be the first of the classes
    const raw = many === 2 && data.classes[0] === data.positive ? [found.raw[1], found.raw[0]] : found.raw;
    const proba = corrected(raw, rule.factors);
    const { best } = decide(proba, rule.costs, data.reject_cost);
    says.dataset.value = best === null ? "-1" : String(best);
    says.replaceChildren(best === null ? w.abstained : named(data.classes[best], 60));
    const shownClasses = many === 2 ? [data.classes.indexOf(data.positive)] : proba.map((_, k) => k).sort((a, b) => proba[b] - proba[a]);
    probs.replaceChildren(el("tbody", {}, ...shownClasses.map((k) => el("tr", {},
      el("th", { scope: "row" }, fill(w.w_probability, { name: clip(data.classes[k], 40) })),
      show(el("td", { id: `w-probability-${k}` }), proba[k], inPercent)))));
    const lead = found.scores.length === 1 ? 0 : best === null ? 0 : best;
    show(score, found.scores[lead], inShort);
    const spoken = found.scores.length === 1 ? data.positive : data.classes[lead];
    towards.textContent = fill(w.w_towards, { name: clip(spoken, 40) });
    const parts = variables.map(({ terms }) => [form.terms[terms[0]].columns.map((c) => clip(shortName(c), 40)).join(" × "), terms.reduce((sum, t) => sum + found.parts[t][lead], 0)]);
    parts.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const top = parts.slice(0, 8).filter((p) => p[1] !== 0);
    const most = Math.max(...top.map((p) => Math.abs(p[1])), 0);
    reasons.replaceChildren(...top.map(([name, value]) => reasonRow(name, value, most)));
  }
  return (next) => { rule = next; render(); };
}
