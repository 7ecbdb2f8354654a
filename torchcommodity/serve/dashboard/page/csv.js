// CSV files of the numbers on the page, unrounded.

import {sortedLevels} from "./format.js";

const yesNo = (value) => (value === null || value === undefined ? null : value ? "yes" : "no");

// Text that a spreadsheet would run as a formula is quoted, by the rule of `data.quote_spreadsheet_cell`.
const FORMULA = /(^|[;\t\r\n])( *[=+\-@\uff1d\uff0b\uff0d\uff20](?!$))|^([\t\r])/g;

export function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  if (typeof value === "boolean") return value ? "True" : "False"; // as pandas writes it
  const text = value.replace(FORMULA, (_, before, sign, blank) => `${before ?? ""}'${sign ?? blank}`);
  return /[",\r\n;]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const serialize = (header, rows) => [header, ...rows].map((row) => `${row.map(cell).join(",")}\n`).join("");

// The columns of `Outlook.to_pandas`, and whether the coverage is out of sample.
function outlook(page) {
  const fields = ["symbol", "name", "unit", "contract", "exchange", "contract_month", "next_roll", "last_price", "last_date", "age_days", "age_trading_days", "stale", "signed", "previous_date"];
  const ahead = ["horizon", "horizon_name", "target_date", "low", "median", "high", "median_change", "width_change"];
  const header = [...fields, ...ahead, "coverage_share", "coverage_forecasts", "coverage_independent", "out_of_sample"];
  return serialize(header, page.symbols.flatMap((one) => one.ranges.map((each) => [...fields.map((name) => one[name]),
    each.rows, each.name, each.date, each.low, each.median, each.high, each.median_change, each.width_change,
    each.coverage?.share, each.coverage?.forecasts, each.coverage?.independent, each.in_sample === null ? null : yesNo(!each.in_sample)])));
}

// The columns of `Forecast.to_pandas`, without the log-returns.
function forecast(page, symbol) {
  return serialize(["symbol", "unit", "origin", "horizon", "date", "level", "price"], symbol.forecasts.flatMap((one) =>
    Object.entries(one.quantiles).map(([level, price]) => [symbol.symbol, symbol.unit, symbol.last_date, one.rows, one.date, Number(level), price])));
}

// The forecast on every row ahead, interpolated between the horizons.
function fan(page, symbol) {
  const levels = sortedLevels(symbol.fan.quantiles);
  return serialize(["symbol", "unit", "origin", "rows", "date", ...levels], symbol.fan.dates.map((day, row) =>
    [symbol.symbol, symbol.unit, symbol.last_date, row, day, ...levels.map((level) => symbol.fan.quantiles[level][row])]));
}

function past(page, symbol, horizon) {
  const one = symbol.past.find((each) => each.rows === horizon.rows), levels = sortedLevels(one.quantiles);
  return serialize(["symbol", "unit", "horizon", "origin", "date", ...levels, "outcome", "out_of_sample"], one.target.map((row, k) =>
    [symbol.symbol, symbol.unit, one.rows, page.days[one.origin[k]], page.days[row], ...levels.map((level) => one.quantiles[level][k]), one.outcomes[k],
      yesNo(page.days[row] > page.model.trained_through)]));
}

function calibration(page) {
  return serialize(["symbol", "horizon", "out_of_sample", "first", "last", "forecasts", "independent", "target", "coverage", "expected_low", "expected_high"],
    page.coverage.flatMap((one) => one.bands.map((band) => [one.symbol ?? "all", one.horizon, yesNo(!one.in_sample), one.first, one.last, one.forecasts, one.independent,
      band.nominal, band.coverage, ...band.expected_range])));
}

function correlation(page) {
  return serialize(["first", "second", "correlation"], page.correlation.pairs);
}

const FILES = {outlook, forecast, fan, past, calibration, correlation};
const OF_A_COMMODITY = ["forecast", "fan", "past"];

// Download one of the files; the name has the commodity and the date of the prices.
export function download(file, page, symbol, horizon) {
  const parts = [OF_A_COMMODITY.includes(file) ? symbol.symbol : "", file, file === "past" ? horizon.code : "", page.prices.last];
  const name = `${parts.filter(Boolean).join("-").replaceAll(/[^\w.-]+/g, "_").slice(0, 100)}.csv`;
  const href = URL.createObjectURL(new Blob([FILES[file](page, symbol, horizon)], {type: "text/csv;charset=utf-8"}));
  Object.assign(document.createElement("a"), {href, download: name}).click();
  URL.revokeObjectURL(href);
}
