// What the sections say, from the document and the choice of commodity and horizon.

import {code, details, element, facts, figure, paragraph, table} from "./dom.js";
import {bands, outcome, percent, plural, price, range, signed} from "./words.js";

const SHOWN = ["0.05", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95"];
const head = (level) => (level === "0.5" ? "median" : `${Math.round(100 * level)}\u00a0%`);
const nameOf = (shown, rows) => shown.horizons.find((horizon) => horizon.rows === rows).name;
const contractOf = (shown, symbol) => (symbol.contract ? `${symbol.contract}, ${shown.model.contract_names[shown.symbols.indexOf(symbol)]}` : "");
const ofUnit = (symbol) => (symbol.unit ? ` ${symbol.unit}` : "");

export function forecast(shown, symbol, horizon) {
  if (symbol.missing) return [paragraph(`${symbol.symbol}: ${symbol.missing}.`)];
  const chosen = symbol.forecasts.find((one) => one.rows === horizon.rows);
  const q = chosen.quantiles, widest = bands(q).at(-1);
  const against = (value) => element("span", {class: "small"}, signed(value / symbol.last - 1));
  const lines = bands(q).map(([low, high, width]) => [`${width}\u00a0% band`, [range(q[low], q[high]), " ", element("span", {class: "small"}, `${signed(q[low] / symbol.last - 1)} to ${signed(q[high] / symbol.last - 1)}`)]]);
  const numbers = element("div", {class: "numbers"},
    element("p", {class: "big"}, element("span", {class: "small"}, `median for ${chosen.date}`), element("strong", null, price(q["0.5"])), ofUnit(symbol), " ", "0.5" in q ? against(q["0.5"]) : ""),
    facts([...lines, ["Last price", `${price(symbol.last)} on ${symbol.origin}`], ["Contract", contractOf(shown, symbol)]]));
  const words = `Fan chart of ${symbol.symbol}: prices up to ${price(symbol.last)} on ${symbol.origin}, then `
    + `${widest ? `a ${widest[2]} % band of ${range(q[widest[0]], q[widest[1]])}` : "the forecast"} on ${chosen.date}. The tables below have the numbers.`;
  const levels = SHOWN.filter((level) => level in q);
  const rows = symbol.forecasts.map((one) => [nameOf(shown, one.rows), one.date, ...levels.map((level) => price(one.quantiles[level]))]);
  const late = symbol.rows_behind > 0
    ? paragraph(`The newest ${plural(symbol.rows_behind, "row")} of the data ${symbol.rows_behind === 1 ? "has" : "have"} no positive price of ${symbol.symbol}: its forecast starts from ${symbol.origin}.`) : "";
  return [
    late,
    element("div", {class: "lead-figure"},
      figure("fan", words, "Recent prices, then the median with its bands; the dotted line is the last price. Quantiles are stated at the horizons, straight lines between them only guide the eye."), numbers),
    table(`Quantiles of the price of ${symbol.symbol}${symbol.unit ? `, ${symbol.unit}` : ""}, at every horizon`, ["Horizon", "Date", ...levels.map(head)], rows,
      {texts: [0, 1], current: symbol.forecasts.indexOf(chosen)}),
    details("Recent prices as a table", () => table(`Recent prices of ${symbol.symbol}`, ["Date", "Price"],
      symbol.recent.dates.map((day, i) => [day, price(symbol.recent.prices[i])]).reverse())),
  ];
}

export function all(shown, symbol, horizon, linkTo) {
  const rows = shown.symbols.map((one) => {
    const link = element("a", {href: linkTo(one, horizon), "aria-current": one === symbol ? "true" : null}, one.symbol);
    if (one.missing) return [link, "none", "", "none", "none", "none", "no forecast yet"];
    const q = one.forecasts.find((each) => each.rows === horizon.rows).quantiles, widest = bands(q).at(-1);
    const past = one.past.find((each) => each.rows === horizon.rows);
    const met = past.target.length ? outcome(past, past.target.length - 1).words : "none yet";
    return [link, price(one.last), one.origin, price(q["0.5"]), widest ? range(q[widest[0]], q[widest[1]]) : "none",
      widest ? percent((q[widest[1]] - q[widest[0]]) / 2 / one.last) : "none", met];
  });
  const heads = ["Commodity", "Last price", "Date", "Median", "90\u00a0% band", "± of last price", "Last outcome"];
  return [table(`Every commodity ${horizon.name} ahead, in its own unit`, heads, rows, {texts: [0, 2, 6], current: shown.symbols.indexOf(symbol)})];
}

export function past(shown, symbol, horizon) {
  if (symbol.missing) return [paragraph("Nothing to compare yet.")];
  const found = symbol.past.find((one) => one.rows === horizon.rows), count = found.target.length;
  if (!count) return [paragraph(`No forecast of ${symbol.symbol} ${horizon.name} ahead has met its day yet.`)];
  const day = (row) => shown.days[row], last = count - 1, seen = shown.model.trained_through;
  const known = bands(found.quantiles), spread = (k) => known.map(([low, high, width]) => `${width}\u00a0%: ${range(found.quantiles[low][k], found.quantiles[high][k])}`).join("; ");
  const median = (k) => (found.quantiles["0.5"] ? `median ${price(found.quantiles["0.5"][k])}, ` : "");
  const inside = found.realized.filter((_, k) => outcome(found, k).width).length;
  const seenWords = day(found.target[last]) <= seen ? `Training had seen all of these days: it ended on ${seen}.`
    : day(found.target[0]) > seen ? `Training had seen none of these days: it ended on ${seen}.` : `Training had seen the days up to the dotted line, ${seen}.`;
  const rolls = symbol.contract ? "It is the price of the front month: forecast and outcome both hold the gaps where its contract rolls. " : "";
  const words = `Line chart of ${symbol.symbol}: prices of ${count} days and the bands that were forecast for them ${horizon.name} before; ${inside} lie inside the widest band.`;
  const latest = symbol.past.filter((one) => one.target.length).map((one) => {
    const k = one.target.length - 1, q = one.quantiles;
    const of = (low, high) => (low in q ? range(q[low][k], q[high][k]) : "none");
    return [nameOf(shown, one.rows), day(one.origin[k]), day(one.target[k]), q["0.5"] ? price(q["0.5"][k]) : "none", of("0.25", "0.75"), of("0.05", "0.95"), price(one.realized[k]), outcome(one, k).words];
  });
  const heads = ["Horizon", "Made on", "For", "Median", "50\u00a0% band", "90\u00a0% band", "Happened", "It was"];
  const levels = SHOWN.filter((level) => level in found.quantiles);
  return [
    paragraph(element("strong", null, `On ${day(found.origin[last])}`), ` the forecast for ${day(found.target[last])} was ${median(last)}${spread(last)}. `,
      element("strong", null, `It became ${price(found.realized[last])}${ofUnit(symbol)}: ${outcome(found, last).words}.`)),
    figure("past", words, `The bands for each day, as they were forecast ${horizon.name} before from the prices up to then, and what the price became.`
      + ` On a day without a price, the last one before it. ${rolls}${seenWords}`),
    table(`The last forecast of ${symbol.symbol} that met its day, at every horizon`, heads, latest, {texts: [0, 1, 2, 7], current: latest.findIndex((row) => row[0] === horizon.name)}),
    details(`All ${count} forecasts ${horizon.name} ahead as a table`, () => table(`Forecasts of ${symbol.symbol} ${horizon.name} ahead and what happened`,
      ["For", "Made on", ...levels.map(head), "Happened", "It was", "Training"],
      found.target.map((row, k) => [day(row), day(found.origin[k]), ...levels.map((level) => price(found.quantiles[level][k])), price(found.realized[k]), outcome(found, k).words, day(row) <= seen ? "seen" : "not seen"]).reverse(),
      {texts: [0, 1, levels.length + 3, levels.length + 4]})),
  ];
}

// Of one symbol: the outcomes that training had not seen, if there are some.
export function judged(shown, symbol) {
  const mine = shown.coverage.filter((one) => one.symbol === symbol.symbol && one.bands.length);
  const unseen = mine.filter((one) => !one.seen);
  return unseen.length ? unseen : mine;
}

export function coverage(shown, symbol) {
  const of = (name) => shown.coverage.filter((one) => one.symbol === name);
  const mine = of(symbol.symbol), together = shown.symbols.length > 1 ? of(null) : [];
  if (!mine.length && !together.length) return [paragraph("No forecast has met its day yet.")];
  const held = (one, stated) => {
    const found = one.bands.find((each) => each.stated === stated);
    return found ? [percent(found.held), " ", element("span", {class: "small"}, `${Math.round(100 * found.chance[0])} to ${Math.round(100 * found.chance[1])}`)] : "none";
  };
  const rows = (records) => records.map((one) => [nameOf(shown, one.horizon), one.seen ? "seen" : "not seen", `${one.first} to ${one.last}`, String(one.forecasts), String(one.apart), ...[0.5, 0.8, 0.9].map((stated) => held(one, stated))]);
  const heads = ["Horizon", "Training had", "Outcomes of", "Forecasts", "Apart", "50\u00a0% band", "80\u00a0% band", "90\u00a0% band"];
  const made = (caption, records) => (records.length ? table(caption, heads, rows(records), {texts: [0, 1, 2]}) : "");
  const fewest = [...mine, ...together].reduce((least, one) => (one.apart < least.apart ? one : least));
  const few = fewest.apart < 30 ? ` Some counts are small (${nameOf(shown, fewest.horizon)}: ${fewest.apart}), so that a share far from the stated one may be chance.` : "";
  const unseen = shown.coverage.some((one) => !one.seen) ? "" : ` Training had seen every one of these outcomes (it ended on ${shown.model.trained_through}): this tells how the bands fit those days, not how they forecast.`;
  const drawn = judged(shown, symbol);
  const shares = drawn.map((one) => `${nameOf(shown, one.horizon)}: ${one.bands.map((each) => `${percent(each.held, 0)} in the ${percent(each.stated, 0)} band`).join(", ")}`);
  const chart = !drawn.length ? "" : figure("coverage", `Dot chart of the coverage of ${symbol.symbol}. ${shares.join("; ")}. The table below has the numbers.`,
    `Share of the outcomes of ${symbol.symbol} inside each band, ${drawn[0].seen ? "seen" : "not seen"} in training. Dotted: the stated share. Pale bar: what chance makes of a perfect forecast.`);
  return [
    paragraph("The share of outcomes inside each band, over the last year of rows. “Apart” counts forecasts that do not overlap; in small print, where the share of a perfect forecast would lie in 95 of 100 cases with that many.", few, unseen),
    chart,
    made(`Outcomes of ${symbol.symbol} inside the bands`, mine),
    made("Outcomes of all commodities inside the bands", together),
  ];
}

export function correlation(shown) {
  const found = shown.correlation;
  if (found.missing) return [paragraph(`${found.missing[0].toUpperCase()}${found.missing.slice(1)}.`)];
  const late = found.symbols.filter((name) => !found.steady.includes(name));
  const since = found.since ? `The present regime began on ${found.since}.` : "No change of regime so far.";
  const rule = `Correlation of log-returns over the last ${found.window} rows. A new regime begins when the correlations differ on average by more than ${found.threshold} from those ${found.window} rows before, at most once in as many.`
    + (late.length ? ` Average and regimes are of ${found.steady.join(", ")}; left out for late or rare prices: ${late.join(", ")}.` : "")
    + (found.left_out ? ` The first ${found.symbols.length} commodities are shown, ${found.left_out} are not.` : "");
  const last = found.mean.at(-1), pair = ([a, b, value]) => [`${a}, ${b}`, value.toFixed(2).replace("-", "\u2212")];
  const words = `Line chart of the average correlation from ${found.dates[0]} to ${found.dates.at(-1)}, now ${last.toFixed(2)}, with ${plural(found.changes.length, "change")} of regime.`;
  return [
    paragraph(element("strong", null, since), ` Average correlation on ${found.dates.at(-1)}: ${last.toFixed(2)}.`),
    element("div", {class: "columns"},
      figure("correlation", words, "Average correlation of all pairs; a dotted line marks the start of a new regime."),
      figure("matrix", `Heat map of the correlation of every pair on ${found.latest_date}; the table has the numbers.`, `Correlation of every pair over the last ${found.window} rows, ${found.latest_date}.`)),
    table("Pairs, strongest first", ["Pair", "Correlation"], found.pairs.slice(0, 10).map(pair), {narrow: true}),
    found.pairs.length > 10 ? details(`All ${found.pairs.length} pairs as a table`, () => table("All pairs", ["Pair", "Correlation"], found.pairs.map(pair), {narrow: true})) : "",
    details("Average correlation as a table", () => table("Average correlation of all pairs", ["Date", "Average", "Regime"],
      found.dates.map((day, i) => [day, found.mean[i].toFixed(2), found.changes.some((change) => change <= day && (i === 0 || change > found.dates[i - 1])) ? "a new one began" : ""]).reverse(), {texts: [0, 2]})),
    paragraph(rule),
  ];
}

export function data(shown, symbol) {
  const {prices, findings} = shown, column = prices.columns.find((one) => one.symbol === symbol.symbol);
  const card = facts([["Publisher", column.publisher], ["Series", column.series], ["Unit", column.unit], ["Contract", contractOf(shown, symbol) || "spot, no roll calendar"],
    ["Address or file", column.location], ["License", column.license], ["Retrieved", column.retrieved], ["Last price", column.last ? `${column.last}, ${ago(column)}` : "none"], ["sha256", code(column.sha256)]]);
  const rows = prices.columns.map((one) => [one.symbol, one.last ?? "none", one.age ?? "none", one.publisher, one.license, one.location, one.retrieved]);
  const found = findings.map((one) => [one.kind, one.symbol, one.date, String(one.line || ""), one.value, String(one.count), one.treatment]);
  return [
    paragraph(`Asked from ${prices.source}: ${plural(prices.rows, "row")} from ${prices.first} to ${prices.last}. No price is altered, filled in or dropped; one that is missing, zero or negative has no log-return, and the next return spans the gap.`),
    element("h3", null, symbol.symbol), card,
    shown.symbols.length > 1 ? table("Every commodity", ["Commodity", "Last price", "Age", "Publisher", "License", "Address or file", "Retrieved"], rows, {texts: [0, 1, 2, 3, 4, 5, 6]}) : "",
    found.length ? table("What is doubtful in the data, and how it was treated", ["What", "Symbol", "Date", "Line", "Value", "Times", "Treatment"], found, {texts: [0, 1, 2, 4, 6]}) : paragraph("Nothing doubtful was found in the data."),
  ];
}

export const ago = (dated) => (dated.age === "today" ? "today" : `${dated.age} old`);

export function model(about) {
  const learned = about.provenance.map((one) => [one.symbol, one.publisher, one.license, one.location, code(one.sha256.slice(0, 16))]);
  const contracts = about.symbols.map((name, n) => (about.contract_names[n] ? `${name} (${about.contract_names[n]})` : name));
  return [
    paragraph(about.use),
    element("ul", null, about.limits.map((limit) => element("li", null, limit))),
    facts([
      ["Commodities", contracts.join(", ")],
      ["Horizons", about.horizons.map((rows, i) => (about.horizon_names[i].endsWith("rows") ? about.horizon_names[i] : `${about.horizon_names[i]} (${rows} rows)`)).join(", ")],
      ["Quantile levels", about.levels.map((level) => `${Math.round(1000 * level) / 10}`).join(", ") + " %"],
      ["Model", about.model], ["What training did", about.note], ["Trained through", about.trained_through],
      ["First forecast after", `${about.warmup} returns`], ["Rows may lie in", about.calendar.join(" to ")],
      ["Format", about.format], ["Written by", `torchcommodity ${about.version}, torch ${about.torch}`], ["sha256", code(about.sha256)],
      ["More in", about.docs.join(", ")],
    ]),
    learned.length ? table("The prices that it learned from", ["Commodity", "Publisher", "License", "Address or file", "sha256, its start"], learned, {texts: [0, 1, 2, 3, 4]}) : paragraph("The file does not say which prices it learned from."),
  ];
}

export function empty(how) {
  return [paragraph(how.words), element("pre", {tabindex: "0"}, how.examples.join("\n"))];
}
