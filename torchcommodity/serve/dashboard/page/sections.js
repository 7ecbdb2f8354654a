// Sections of the page, from the document and the selected commodity and horizon.

import {code, definitions, details, element, figure, paragraph, table} from "./dom.js";
import {bands, change, percent, plural, position, price, range} from "./format.js";

const TABLE_LEVELS = ["0.05", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95"];
const levelHeader = (level) => (level === "0.5" ? "Median" : `${Math.round(100 * level)}%`);
const horizonName = (page, rows) => page.horizons.find((horizon) => horizon.rows === rows).name;
const contractName = (page, symbol) => (symbol.contract ? `${symbol.contract}, ${page.model.contract_names[page.symbols.indexOf(symbol)]}` : "");
const unitSuffix = (symbol) => (symbol.unit ? ` ${symbol.unit}` : "");
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

export function forecast(page, symbol, horizon) {
  if (symbol.missing) return [paragraph(`${symbol.symbol}: ${symbol.missing}.`)];
  const selected = symbol.forecasts.find((one) => one.rows === horizon.rows);
  const q = selected.quantiles, widest = bands(q).at(-1);
  const relative = (value) => change(value / symbol.last - 1);
  const intervals = bands(q).map(([low, high, width]) => [`${width}% interval`,
    [range(q[low], q[high]), " ", element("span", {class: "small"}, `${relative(q[low])} to ${relative(q[high])}`)]]);
  const numbers = element("div", {class: "numbers"},
    element("p", {class: "big"}, element("span", {class: "small"}, `Median for ${selected.date}`), element("strong", null, price(q["0.5"])), unitSuffix(symbol), " ",
      "0.5" in q ? element("span", {class: "small"}, relative(q["0.5"])) : ""),
    definitions([...intervals, ["Last price", `${price(symbol.last)} on ${symbol.origin}`], ["Contract", contractName(page, symbol)]]));
  const description = `Fan chart of ${symbol.symbol}: prices up to ${price(symbol.last)} on ${symbol.origin}, then `
    + `${widest ? `a ${widest[2]}% interval of ${range(q[widest[0]], q[widest[1]])}` : "the forecast"} on ${selected.date}. The tables below have the numbers.`;
  const levels = TABLE_LEVELS.filter((level) => level in q);
  const rows = symbol.forecasts.map((one) => [horizonName(page, one.rows), one.date, ...levels.map((level) => price(one.quantiles[level]))]);
  const late = symbol.rows_behind > 0
    ? paragraph(`${symbol.symbol} has no positive price in the latest ${plural(symbol.rows_behind, "row")} of the data; its forecast starts from ${symbol.origin}.`) : "";
  return [
    late,
    element("div", {class: "overview"},
      figure("fan", description, "Recent prices, then the forecast median and intervals. The dotted line marks the last price. Lines between horizons are interpolated."), numbers),
    table(`Price quantiles of ${symbol.symbol} by horizon${symbol.unit ? `, in ${symbol.unit}` : ""}`, ["Horizon", "Date", ...levels.map(levelHeader)], rows,
      {texts: [0, 1], current: symbol.forecasts.indexOf(selected)}),
    details("Recent prices as a table", () => table(`Recent prices of ${symbol.symbol}`, ["Date", "Price"],
      symbol.recent.dates.map((day, i) => [day, price(symbol.recent.prices[i])]).reverse(), {narrow: true})),
  ];
}

export function all(page, symbol, horizon, linkTo) {
  const rows = page.symbols.map((one) => {
    const link = element("a", {href: linkTo(one, horizon), "aria-current": one === symbol ? "true" : null}, one.symbol);
    if (one.missing) return [link, "none", "", "none", "none", "none", "no forecast yet"];
    const q = one.forecasts.find((each) => each.rows === horizon.rows).quantiles, widest = bands(q).at(-1);
    const past = one.past.find((each) => each.rows === horizon.rows);
    const latest = past.target.length ? position(past, past.target.length - 1).text : "none yet";
    return [link, price(one.last), one.origin, price(q["0.5"]), widest ? range(q[widest[0]], q[widest[1]]) : "none",
      widest ? percent((q[widest[1]] - q[widest[0]]) / 2 / one.last) : "none", latest];
  });
  const headers = ["Commodity", "Last price", "Date", "Median", "90% interval", "± of last price", "Latest outcome"];
  return [table(`Forecasts ${horizon.name} ahead, each in its own unit`, headers, rows, {texts: [0, 2, 6], current: page.symbols.indexOf(symbol)})];
}

function trainingNote(trainedThrough, first, last) {
  if (last <= trainedThrough) return `All of these dates are in-sample: the model was trained through ${trainedThrough}.`;
  if (first > trainedThrough) return `All of these dates are out-of-sample: the model was trained through ${trainedThrough}.`;
  return `Dates up to the dotted line (${trainedThrough}) are in-sample.`;
}

export function past(page, symbol, horizon) {
  if (symbol.missing) return [paragraph("No forecasts to compare yet.")];
  const forecasts = symbol.past.find((one) => one.rows === horizon.rows), count = forecasts.target.length;
  if (!count) return [paragraph(`No forecast of ${symbol.symbol} ${horizon.name} ahead has an outcome yet.`)];
  const day = (row) => page.days[row], last = count - 1, q = forecasts.quantiles;
  const intervals = (k) => bands(q).map(([low, high, width]) => `${width}% interval ${range(q[low][k], q[high][k])}`);
  const summary = [...(q["0.5"] ? [`median ${price(q["0.5"][last])}`] : []), ...intervals(last)].join("; ");
  const inside = forecasts.outcomes.filter((_, k) => position(forecasts, k).width).length;
  const rolls = symbol.contract ? "This is the front-month price: forecasts and outcomes both include the gaps when the contract rolls. " : "";
  const description = `Line chart of ${symbol.symbol}: prices on ${count} days and the intervals forecast for them ${horizon.name} earlier; ${inside} prices are inside the widest interval.`;
  const latest = symbol.past.filter((one) => one.target.length).map((one) => {
    const k = one.target.length - 1;
    const interval = (low, high) => (low in one.quantiles ? range(one.quantiles[low][k], one.quantiles[high][k]) : "none");
    return [horizonName(page, one.rows), day(one.origin[k]), day(one.target[k]), one.quantiles["0.5"] ? price(one.quantiles["0.5"][k]) : "none",
      interval("0.25", "0.75"), interval("0.05", "0.95"), price(one.outcomes[k]), position(one, k).text];
  });
  const headers = ["Horizon", "Origin", "Target date", "Median", "50% interval", "90% interval", "Outcome", "Position"];
  const levels = TABLE_LEVELS.filter((level) => level in q);
  return [
    paragraph(element("strong", null, `Forecast of ${day(forecasts.origin[last])} for ${day(forecasts.target[last])}:`), ` ${summary}. `,
      element("strong", null, `Outcome: ${price(forecasts.outcomes[last])}${unitSuffix(symbol)}, ${position(forecasts, last).text}.`)),
    figure("past", description, `Intervals forecast ${horizon.name} before each date, from the prices up to then, and the price on that date`
      + ` (or the last price before it). ${rolls}${trainingNote(page.model.trained_through, day(forecasts.target[0]), day(forecasts.target[last]))}`),
    table(`Latest forecast of ${symbol.symbol} with an outcome, by horizon`, headers, latest, {texts: [0, 1, 2, 7], current: latest.findIndex((row) => row[0] === horizon.name)}),
    details(`All ${count} forecasts ${horizon.name} ahead as a table`, () => table(`Forecasts of ${symbol.symbol} ${horizon.name} ahead and their outcomes`,
      ["Target date", "Origin", ...levels.map(levelHeader), "Outcome", "Position", "Sample"],
      forecasts.target.map((row, k) => [day(row), day(forecasts.origin[k]), ...levels.map((level) => price(q[level][k])), price(forecasts.outcomes[k]),
        position(forecasts, k).text, day(row) <= page.model.trained_through ? "in-sample" : "out-of-sample"]).reverse(),
      {texts: [0, 1, levels.length + 3, levels.length + 4]})),
  ];
}

// Coverage records of one symbol: out-of-sample if there are any, else in-sample.
export function coverageRecords(page, symbol) {
  const records = page.coverage.filter((one) => one.symbol === symbol.symbol && one.bands.length);
  const outOfSample = records.filter((one) => !one.in_sample);
  return outOfSample.length ? outOfSample : records;
}

export function coverage(page, symbol) {
  const own = page.coverage.filter((one) => one.symbol === symbol.symbol);
  const together = page.symbols.length > 1 ? page.coverage.filter((one) => one.symbol === null) : [];
  if (!own.length && !together.length) return [paragraph("No forecast has an outcome yet.")];
  const cell = (record, nominal) => {
    const band = record.bands.find((one) => one.nominal === nominal);
    return band ? [percent(band.coverage), " ", element("span", {class: "small"}, `${band.expected_range.map((share) => Math.round(100 * share)).join(" to ")}%`)] : "none";
  };
  const rows = (records) => records.map((one) => [horizonName(page, one.horizon), one.in_sample ? "in-sample" : "out-of-sample", `${one.first} to ${one.last}`,
    String(one.forecasts), String(one.independent), ...[0.5, 0.8, 0.9].map((nominal) => cell(one, nominal))]);
  const headers = ["Horizon", "Sample", "Target dates", "Forecasts", "Independent", "50% interval", "80% interval", "90% interval"];
  const coverageTable = (caption, records) => (records.length ? table(caption, headers, rows(records), {texts: [0, 1, 2]}) : "");
  const fewest = [...own, ...together].reduce((smallest, one) => (one.independent < smallest.independent ? one : smallest));
  const small = fewest.independent < 30 ? ` Some samples are small (${fewest.independent} independent ${fewest.independent === 1 ? "forecast" : "forecasts"} ${horizonName(page, fewest.horizon)} ahead), so coverage may differ widely from the nominal level by chance.` : "";
  const inSample = page.coverage.some((one) => !one.in_sample) ? "" : ` All outcomes are in-sample (the model was trained through ${page.model.trained_through}): this shows how well the intervals fit, not how well they forecast.`;
  const records = coverageRecords(page, symbol);
  const shares = records.map((one) => `${horizonName(page, one.horizon)}: ${one.bands.map((band) => `${percent(band.coverage, 0)} in the ${percent(band.nominal, 0)} interval`).join(", ")}`);
  const chart = !records.length ? "" : figure("coverage", `Dot chart of the coverage of ${symbol.symbol}. ${shares.join("; ")}. The table below has the numbers.`,
    `Share of the outcomes of ${symbol.symbol} inside each interval, ${records[0].in_sample ? "in-sample" : "out-of-sample"}. Dotted line: nominal level. Pale bar: 95% range expected of a calibrated forecast.`);
  return [
    paragraph("Share of outcomes inside each interval over the last year. “Independent” counts forecasts whose periods do not overlap; the small numbers are the 95% range expected of a calibrated forecast with that many.", small, inSample),
    chart,
    coverageTable(`Coverage of ${symbol.symbol}`, own),
    coverageTable("Coverage of all commodities together", together),
  ];
}

export function correlation(page) {
  const result = page.correlation;
  if (result.missing) return [paragraph(sentence(`Correlation ${result.missing}`))];
  const sparse = result.symbols.filter((name) => !result.dense.includes(name));
  const regime = result.regime_start ? `Current regime since ${result.regime_start}.` : "No regime change so far.";
  const method = `Correlation of log-returns over the last ${result.window} rows. A new regime starts when the correlations differ from those ${result.window} rows earlier by more than ${result.threshold} on average, at most once every ${result.window} rows.`
    + (sparse.length ? ` Average and regimes use ${result.dense.join(", ")}; ${sparse.join(", ")} ${sparse.length === 1 ? "has" : "have"} too few prices.` : "")
    + (result.excluded ? ` Limited to the first ${result.symbols.length} commodities; ${result.excluded} left out.` : "");
  const last = result.mean.at(-1), signedNumber = (value) => value.toFixed(2).replace("-", "\u2212");
  const pair = ([a, b, value]) => [`${a}, ${b}`, signedNumber(value)];
  const isChange = (i) => result.changes.some((day) => day <= result.dates[i] && (i === 0 || day > result.dates[i - 1]));
  const description = `Line chart of the average correlation from ${result.dates[0]} to ${result.dates.at(-1)}, now ${last.toFixed(2)}, with ${plural(result.changes.length, "regime change")}.`;
  return [
    paragraph(element("strong", null, regime), ` Average correlation on ${result.dates.at(-1)}: ${signedNumber(last)}.`),
    element("div", {class: "columns"},
      figure("correlation", description, "Average correlation of all pairs. Dotted lines mark the start of a new regime."),
      figure("matrix", `Heat map of the pairwise correlations on ${result.latest_date}; the table has the numbers.`, `Pairwise correlations over the last ${result.window} rows, ${result.latest_date}.`)),
    table("Strongest pairs", ["Pair", "Correlation"], result.pairs.slice(0, 10).map(pair), {narrow: true}),
    result.pairs.length > 10 ? details(`All ${result.pairs.length} pairs as a table`, () => table("All pairs", ["Pair", "Correlation"], result.pairs.map(pair), {narrow: true})) : "",
    details("Average correlation as a table", () => table("Average correlation of all pairs", ["Date", "Average", "Regime"],
      result.dates.map((day, i) => [day, signedNumber(result.mean[i]), isChange(i) ? "new regime" : ""]).reverse(), {texts: [0, 2], narrow: true})),
    paragraph(method),
  ];
}

export const age = (column) => (column.age === "today" ? "today" : `${column.age} old`);

export function data(page, symbol) {
  const {prices, findings} = page, column = prices.columns.find((one) => one.symbol === symbol.symbol);
  const source = definitions([["Publisher", column.publisher], ["Series", column.series], ["Unit", column.unit], ["Contract", contractName(page, symbol) || "none (spot price)"],
    ["URL or file", column.location], ["License", column.license], ["Credit line", column.credit || "none"], ["Retrieved", column.retrieved], ["Last price", column.last ? `${column.last}, ${age(column)}` : "none"], ["SHA-256", code(column.sha256)]]);
  const rows = prices.columns.map((one) => [one.symbol, one.last ?? "none", one.age ?? "none", one.publisher, one.license, one.location, one.retrieved]);
  const issues = findings.map((one) => [one.kind, one.symbol, one.date, String(one.line || ""), one.value, String(one.count), one.treatment]);
  return [
    paragraph(`Source: ${prices.source}, ${plural(prices.rows, "row")} from ${prices.first} to ${prices.last}. Prices are neither adjusted nor filled nor dropped. A missing, zero or negative price has no log-return; the next return spans the gap.`),
    element("h3", null, symbol.symbol), source,
    page.symbols.length > 1 ? table("Sources of all commodities", ["Commodity", "Last price", "Age", "Publisher", "License", "URL or file", "Retrieved"], rows, {texts: [0, 1, 2, 3, 4, 5, 6]}) : "",
    issues.length ? table("Data issues and how they are treated", ["Issue", "Symbol", "Date", "Line", "Value", "Count", "Treatment"], issues, {texts: [0, 1, 2, 4, 6]}) : paragraph("No data issues."),
  ];
}

export function model(card) {
  const sources = card.provenance.map((one) => [one.symbol, one.publisher, one.license, one.location, code(one.sha256.slice(0, 16))]);
  const commodities = card.symbols.map((name, n) => (card.contract_names[n] ? `${name} (${card.contract_names[n]})` : name));
  const horizons = card.horizons.map((rows, i) => (card.horizon_names[i].endsWith("rows") ? card.horizon_names[i] : `${card.horizon_names[i]} (${rows} rows)`));
  return [
    paragraph(card.use),
    element("ul", null, card.limitations.map((limitation) => element("li", null, limitation))),
    definitions([
      ["Commodities", commodities.join(", ")],
      ["Horizons", horizons.join(", ")],
      ["Quantile levels", card.levels.map((level) => `${Math.round(1000 * level) / 10}%`).join(", ")],
      ["Model", card.model], ["Training", card.note], ["Trained through", card.trained_through],
      ["Warm-up", `${card.warmup} returns`], ["Supported dates", card.calendar.join(" to ")],
      ["Format", card.format], ["Written by", `torchcommodity ${card.version}, torch ${card.torch}`], ["SHA-256", code(card.sha256)],
      ["Documentation", card.docs.join(", ")],
    ]),
    sources.length ? table("Training prices", ["Commodity", "Publisher", "License", "URL or file", "SHA-256 (start)"], sources, {texts: [0, 1, 2, 3, 4]}) : paragraph("The artifact does not record the source of its training prices."),
  ];
}

export function empty(instructions) {
  return [paragraph(instructions.text), element("pre", {tabindex: "0"}, instructions.examples.join("\n"))];
}
