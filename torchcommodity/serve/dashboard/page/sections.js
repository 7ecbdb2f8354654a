// Sections of the selected commodity and horizon: forecast, past forecasts, calibration; and the correlations.

import {csvButton, definitions, details, element, figure, paragraph, small, table} from "./dom.js";
import {ago, bands, change, changeOf, coefficient, lastPrice, mainBand, mainRange, month, percent, plural, position, price, priceChange, range, sortedLevels, title, unitSuffix, yesNo} from "./format.js";

const TABLE_LEVELS = ["0.05", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95"];
const ROWS = {daily: "day", weekly: "week", monthly: "month"};
const levelHeader = (level) => (level === "0.5" ? "Median" : `${Math.round(1e4 * level) / 100} %`);
const horizonName = (page, rows) => page.horizons.find((horizon) => horizon.rows === rows).name;
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
// The server sends the outlook before the past forecasts.
const waiting = (page) => paragraph(page.refresh_error ? "Past forecasts could not be computed; the error is at the top of the page." : "Past forecasts are being computed…");
const tools = (...buttons) => element("div", {class: "tools"}, buttons);
const rangesAt = (quantiles, k, decimals) => bands(quantiles).map(([low, high]) => range(quantiles[low][k], quantiles[high][k], decimals));
const rangeHeaders = (quantiles) => bands(quantiles).map(([, , width]) => `${width} % range`);

export const contractName = (page, symbol) => (symbol.contract ? `${symbol.contract}, ${page.model.contract_names[page.symbols.indexOf(symbol)]}` : "");

export function forecast(page, symbol, horizon) {
  if (symbol.missing) return [paragraph(`${symbol.symbol}: ${symbol.missing}.`)];
  const selected = symbol.forecasts.find((one) => one.rows === horizon.rows), q = selected.quantiles, widest = bands(q).at(-1);
  const description = `Fan chart of ${symbol.name}: prices up to ${lastPrice(symbol)} on ${symbol.last_date}, then `
    + `${widest ? `a ${widest[2]} % range of ${range(q[widest[0]], q[widest[1]], symbol.decimals)}` : "the forecast"} on ${selected.date}. The tables below have the numbers.`;
  const late = symbol.rows_behind > 0
    ? paragraph(`${symbol.name} has no ${symbol.signed ? "" : "positive "}price in the latest ${plural(symbol.rows_behind, "row")} of the data; its forecast starts from ${symbol.last_date}.`) : "";
  const step = ROWS[page.model.frequency], marks = symbol.rolls.length ? " Triangles: the contract rolls." : "";
  return [
    late,
    element("div", {class: "overview"},
      figure("fan", description, `Recent prices, then the ranges ahead, interpolated between the horizons in the square root of time.${marks}`, {zoom: true}),
      numbers(page, symbol, horizon, q, selected.date)),
    medianNote(symbol, horizon),
    quantileTable(page, symbol, horizon),
    tools(csvButton("forecast", `the quantiles of ${symbol.name}`)),
    details(`Every ${step} ahead as a table`, () => element("div", null, fanTable(symbol, step), tools(csvButton("fan", `every ${step} ahead`)))),
    details("Recent prices as a table", () => table(`Recent prices of ${symbol.name}`, ["Date", "Price"],
      symbol.recent.dates.map((day, i) => [day, price(symbol.recent.prices[i], symbol.quoted_decimals)]).reverse(), {narrow: true})),
  ];
}

function numbers(page, symbol, horizon, q, date) {
  const main = mainBand(q), one = symbol.ranges.find((each) => each.rows === horizon.rows);
  const relative = (value) => (symbol.signed ? priceChange(value - symbol.last_price, symbol.decimals) : change(value / symbol.last_price - 1));
  const others = bands(q).filter((band) => band[2] !== main[2]).map(([low, high, width]) => [`${width} % range`, range(q[low], q[high], symbol.decimals)]);
  const past = one.coverage && `${percent(one.coverage.share)} of ${one.coverage.forecasts}, ${one.coverage.independent} independent${one.in_sample ? ", in sample" : ""}. Target: ${mainRange(page)}`;
  const unchanged = symbol.previous_date === symbol.last_date;
  return element("div", {class: "numbers"},
    main ? element("p", {class: "big"}, small(`${main[2]} % range on ${date}`), element("strong", null, range(q[main[0]], q[main[1]], symbol.decimals)), unitSuffix(symbol),
      small(`${relative(q[main[0]])} to ${relative(q[main[1]])} ${symbol.signed ? "from" : "of"} the last price`)) : "",
    definitions([
      ["Last price", `${lastPrice(symbol)} on ${symbol.last_date}, ${ago(symbol.age)}`],
      ["Change", unchanged ? "no new price" : changeOf(one, symbol) && `${changeOf(one, symbol)} since ${symbol.previous_date}`], ["Coverage", past], ...others, ["Median", price(q["0.5"], symbol.decimals)], ["Value at risk", valueAtRisk(symbol, q)],
      ["Contract", [contractName(page, symbol), symbol.contract_month ? month(symbol.contract_month) : ""].filter(Boolean).join(", ")], ["Next roll", symbol.next_roll && `${symbol.next_roll}${symbol.next_roll <= page.created.slice(0, 10) ? " (passed)" : ""}`],
    ]),
    dayField(symbol, date));
}

// What moves the median, in the words of the server; an artifact of an earlier version does not say it.
function medianNote(symbol, horizon) {
  const {location} = symbol.ranges.find((one) => one.rows === horizon.rows);
  return location ? paragraph(element("strong", null, "What moves the median"), ` over ${location}.`) : "";
}

// Loss of a position that 5 of 100 outcomes exceed, as a share of its value, or for each unit held of a price that may be negative.
function valueAtRisk(symbol, q) {
  if (symbol.signed) {
    const losses = [symbol.last_price - q["0.05"], q["0.95"] - symbol.last_price];
    const [long, short] = losses.map((loss) => price(loss, symbol.decimals));
    return losses.every(Number.isFinite) ? `95 %: long ${long}, short ${short}${unitSuffix(symbol)}` : "";
  }
  const [low, high] = ["0.05", "0.95"].map((level) => q[level] / symbol.last_price - 1);
  return Number.isFinite(low) && Number.isFinite(high) ? `95 %: long ${percent(-low, 1)}, short ${percent(high, 1)}` : "";
}

// Range on any day up to the last horizon: that of the last row of the fan on or before the day.
function dayField(symbol, date) {
  const {dates, quantiles} = symbol.fan, main = mainBand(quantiles);
  if (!main) return "";
  const input = element("input", {type: "date", id: "day", min: dates[1], max: dates.at(-1), value: date}), output = element("output", {for: "day"});
  const show = () => {
    const row = dates.findLastIndex((day) => day <= input.value), outside = row < 1 || input.value > dates.at(-1);
    output.textContent = outside ? `Choose a day from ${dates[1]} to ${dates.at(-1)}, where the forecast ends.`
      : `${dates[row]}: ${range(quantiles[main[0]][row], quantiles[main[1]][row], symbol.decimals)}`;
  };
  input.addEventListener("input", show);
  show();
  return element("div", {class: "day"}, element("label", {for: "day"}, `${main[2]} % range on another day`), input, output);
}

// Horizons are columns, so that the table fits a phone.
function quantileTable(page, symbol, horizon) {
  const {forecasts} = symbol, known = sortedLevels(forecasts[0].quantiles), levels = known.length <= TABLE_LEVELS.length ? known : TABLE_LEVELS.filter((level) => known.includes(level));
  const rows = [["Date", ...forecasts.map((one) => one.date)], ...levels.map((level) => [levelHeader(level), ...forecasts.map((one) => price(one.quantiles[level], symbol.decimals))])];
  return table(`Quantiles of the price of ${symbol.name}${symbol.unit ? `, in ${symbol.unit}` : ""}`,
    ["Quantile", ...forecasts.map((one) => horizonName(page, one.rows))], rows, {stacked: false});
}

function fanTable(symbol, step) {
  const {dates, quantiles} = symbol.fan;
  return table(`Ranges of ${symbol.name} on every ${step} ahead, interpolated between the horizons`, ["Date", "Median", ...rangeHeaders(quantiles)],
    dates.slice(1).map((day, i) => [day, price(quantiles["0.5"]?.[i + 1], symbol.decimals), ...rangesAt(quantiles, i + 1, symbol.decimals)]));
}

function trainingNote(trainedThrough, first, last) {
  if (last <= trainedThrough) return `Out of sample: no. The model was trained through ${trainedThrough}.`;
  if (first > trainedThrough) return `Out of sample: yes. The model was trained through ${trainedThrough}.`;
  return `Out of sample: only after the dotted line (${trainedThrough}), the last day of training.`;
}

export function past(page, symbol, horizon) {
  if (symbol.missing) return [paragraph("No forecasts to check yet.")];
  if (page.state === "outlook") return [waiting(page)];
  const forecasts = symbol.past.find((one) => one.rows === horizon.rows), count = forecasts.target.length;
  if (!count) return [paragraph(`No forecast of ${symbol.name} ${horizon.name} ahead has an outcome yet.`)];
  const day = (row) => page.days[row], last = count - 1, q = forecasts.quantiles;
  const ranges = (k) => bands(q).map(([low, high, width]) => `${width} % range ${range(q[low][k], q[high][k], symbol.decimals)}`);
  const outcome = (one, k) => price(one.outcomes[k], symbol.quoted_decimals);
  const inside = forecasts.outcomes.filter((_, k) => position(forecasts, k).width).length;
  const rolls = symbol.contract ? "These are front-month prices: forecasts and outcomes both include the gaps when the contract rolls. " : "";
  const description = `Line chart of ${symbol.name}: prices on ${count} days and the ranges forecast for them ${horizon.name} earlier; ${inside} prices are inside the widest range.`;
  const latest = symbol.past.filter((one) => one.target.length).map((one) => {
    const k = one.target.length - 1;
    return [horizonName(page, one.rows), day(one.origin[k]), day(one.target[k]), ...rangesAt(one.quantiles, k, symbol.decimals), outcome(one, k), position(one, k).text];
  });
  const width = bands(q).length;
  const all = () => element("div", null, table(`Past forecasts of ${symbol.name} ${horizon.name} ahead and their outcomes`,
    ["Date", "Origin", "Median", ...rangeHeaders(q), "Outcome", "Position", "Out of sample"],
    forecasts.target.map((row, k) => [day(row), day(forecasts.origin[k]), price(q["0.5"]?.[k], symbol.decimals), ...rangesAt(q, k, symbol.decimals), outcome(forecasts, k),
      position(forecasts, k).text, yesNo(day(row) > page.model.trained_through)]).reverse(), {texts: [0, 1, width + 4, width + 5]}));
  return [
    paragraph(element("strong", null, `Forecast of ${day(forecasts.origin[last])} for ${day(forecasts.target[last])}:`), ` ${ranges(last).join("; ")}. `,
      element("strong", null, `Outcome: ${outcome(forecasts, last)}${unitSuffix(symbol)}, ${position(forecasts, last).text}.`)),
    figure("past", description, `Ranges forecast ${horizon.name} before each date, from the prices up to then, and the price on that date`
      + ` (or the last price before it). ${rolls}${trainingNote(page.model.trained_through, day(forecasts.target[0]), day(forecasts.target[last]))}`, {zoom: true}),
    table(`Latest forecast of ${symbol.name} with an outcome, by horizon`, ["Horizon", "Origin", "Date", ...rangeHeaders(q), "Outcome", "Position"], latest,
      {texts: [0, 1, 2, width + 4], current: latest.findIndex((row) => row[0] === horizon.name)}),
    tools(csvButton("past", `the past forecasts of ${symbol.name} ${horizon.name} ahead`)),
    details(`All ${count} past forecasts ${horizon.name} ahead as a table`, all),
  ];
}

// Coverage records of one commodity: out of sample if there are any, else in sample.
export function coverageRecords(page, symbol) {
  const records = page.coverage.filter((one) => one.symbol === symbol.symbol && one.bands.length);
  const outOfSample = records.filter((one) => !one.in_sample);
  return outOfSample.length ? outOfSample : records;
}

export function coverage(page, symbol) {
  if (page.state === "outlook") return [waiting(page)];
  const own = page.coverage.filter((one) => one.symbol === symbol.symbol);
  const together = page.symbols.length > 1 ? page.coverage.filter((one) => one.symbol === null) : [];
  if (!own.length && !together.length) return [paragraph("No forecast has an outcome yet.")];
  const targets = [...own, ...together][0].bands.map((band) => band.nominal);
  const cell = (record, nominal) => {
    const band = record.bands.find((one) => one.nominal === nominal);
    return band ? [percent(band.coverage, 1), " ", small(`${band.expected_range.map((share) => Math.round(100 * share)).join(" to ")} %`)] : "none";
  };
  const rows = (records) => records.map((one) => [horizonName(page, one.horizon), yesNo(!one.in_sample), `${one.first} to ${one.last}`,
    one.forecasts.toLocaleString("en"), String(one.independent), ...targets.map((nominal) => cell(one, nominal))]);
  const headers = ["Horizon", "Out of sample", "Dates", "Forecasts", "Independent", ...targets.map((nominal) => `Target: ${percent(nominal)}`)];
  const coverageTable = (caption, records) => (records.length ? table(caption, headers, rows(records), {texts: [0, 1, 2]}) : "");
  const fewest = [...own, ...together].reduce((smallest, one) => (one.independent < smallest.independent ? one : smallest));
  const few = fewest.independent < 30 ? ` Some samples are small (${plural(fewest.independent, "independent forecast")} ${horizonName(page, fewest.horizon)} ahead), so the share may differ widely from its target by chance.` : "";
  const inSample = page.coverage.some((one) => !one.in_sample) ? "" : ` Out of sample: no. The model was trained through ${page.model.trained_through}: this shows how well the ranges fit, not how well they forecast.`;
  const records = coverageRecords(page, symbol);
  const shares = records.map((one) => `${horizonName(page, one.horizon)}: ${one.bands.map((band) => `${percent(band.coverage)} in the ${percent(band.nominal)} range`).join(", ")}`);
  const chart = !records.length ? "" : figure("coverage", `Dot chart of the calibration of ${symbol.name}. ${shares.join("; ")}. The table below has the numbers.`,
    `Share of the outcomes of ${symbol.name} inside each range. Out of sample: ${yesNo(!records[0].in_sample)}. Dotted line: target. Pale bar: 95 % range expected of a calibrated forecast.`);
  return [
    paragraph("Share of outcomes inside each range over the last year. Independent forecasts do not overlap; the small numbers are the 95 % range expected of a calibrated forecast with that many.", few, inSample),
    chart,
    coverageTable(`Calibration of ${symbol.name}`, own),
    together.length ? details("Calibration of all commodities together", () => coverageTable("Calibration of all commodities together", together)) : "",
    tools(csvButton("calibration", "the calibration of all commodities")),
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
  const last = result.mean.at(-1);
  const fullName = (name) => title(page.symbols.find((one) => one.symbol === name));
  const pair = ([a, b, value]) => [`${fullName(a)} and ${fullName(b)}`, coefficient(value)];
  const isChange = (i) => result.changes.some((day) => day <= result.dates[i] && (i === 0 || day > result.dates[i - 1]));
  const description = `Line chart of the average correlation from ${result.dates[0]} to ${result.dates.at(-1)}, now ${coefficient(last)}, with ${plural(result.changes.length, "regime change")}.`;
  return [
    paragraph(element("strong", null, regime), ` Average correlation on ${result.dates.at(-1)}: ${coefficient(last)}.`),
    element("div", {class: "columns"},
      figure("correlation", description, "Average correlation of all pairs. Dotted lines mark the start of a new regime.", {zoom: true}),
      figure("matrix", `Heat map of the pairwise correlations on ${result.latest_date}; the table has the numbers.`, `Pairwise correlations over the last ${result.window} rows, ${result.latest_date}.`)),
    table("Strongest pairs", ["Pair", "Correlation"], result.pairs.slice(0, 10).map(pair), {narrow: true}),
    tools(csvButton("correlation", "the correlations of all pairs")),
    result.pairs.length > 10 ? details(`All ${result.pairs.length} pairs as a table`, () => table("All pairs", ["Pair", "Correlation"], result.pairs.map(pair), {narrow: true})) : "",
    details("Average correlation as a table", () => table("Average correlation of all pairs", ["Date", "Average", "Regime"],
      result.dates.map((day, i) => [day, coefficient(result.mean[i]), isChange(i) ? "new regime" : ""]).reverse(), {texts: [0, 2], narrow: true})),
    paragraph(method),
  ];
}

export function empty(instructions) {
  return [paragraph(instructions.text), element("pre", {tabindex: "0"}, instructions.examples.join("\n"))];
}
