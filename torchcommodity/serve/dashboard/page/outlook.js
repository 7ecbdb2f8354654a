// The first screen: one row per commodity with its last price, ranges ahead, changes, coverage and contract.

import {csvButton, element, paragraph, table} from "./dom.js";
import {ago, changeOf, lastPrice, mainRange, month, percent, price, range} from "./format.js";

const line = (...content) => element("span", {class: "line"}, ...content);
const smallLine = (...content) => element("span", {class: "line small"}, ...content);

// The most frequent value, which a header shows once for all rows.
function usual(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].reduce((a, b) => (b[1] > a[1] ? b : a), [null, 0])[0];
}

export function outlook(page, selected, horizon, linkTo) {
  const forecasts = page.symbols.filter((one) => !one.missing);
  const dates = page.horizons.map((_, h) => usual(forecasts.map((one) => one.ranges[h].date))), lastDate = usual(forecasts.map((one) => one.last_date));
  const contracts = page.symbols.some((one) => one.contract);
  const today = page.created.slice(0, 10), dateText = (day) => (day <= today ? `${day} (passed)` : day);
  const head = (text, detail) => ({label: text, content: [line(text), detail ? smallLine(detail) : ""]});
  const headers = ["Commodity", head("Last price", lastDate), ...page.horizons.map((one, h) => head(one.name, dates[h] && dateText(dates[h]))),
    head("Coverage", mainRange(page) && `${horizon.name}, Target: ${mainRange(page)}`), ...(contracts ? [head("Contract")] : [])];
  const rows = page.symbols.map((one) => [
    name(one, linkTo(one, horizon), one === selected), last(one, lastDate), ...page.horizons.map((_, h) => ahead(one, h, dates[h], dateText)),
    coverage(one, horizon, page.state === "outlook"), ...(contracts ? [contract(one, today)] : []),
  ]);
  const days = page.horizons.flatMap((one, h) => (dates[h] ? `${one.name} to ${dateText(dates[h])}` : [])).join(", ");
  return [
    table([mainRange(page) ? `${mainRange(page)} range of the price at each horizon` : "Median of the price at each horizon", days ? element("span", {class: "phone"}, `: ${days}`) : ""], headers, rows,
      {texts: contracts ? [0, headers.length - 1] : [0], current: page.symbols.indexOf(selected), stacked: true}),
    element("div", {class: "tools"}, csvButton("outlook", "the ranges of all commodities")),
    element("p", {class: "explanation"}, explanation(page, horizon)),
  ];
}

function explanation(page, horizon) {
  const previous = usual(page.symbols.filter((one) => !one.missing && one.previous_date !== one.last_date).map((one) => one.previous_date));
  const main = mainRange(page);
  if (!main) return "Median of each forecast; it has no quantile levels for a range.";
  return `Of all prices, ${main} should end inside a range of ${main}. Beside it: how its median and its width have changed since the previous forecast${previous ? ` (${previous})` : ""}. `
    + `Coverage: share of past prices inside the ${main} range forecast for them ${horizon.name} earlier. Forecasts that overlap say little new, so the number of independent ones is the size of the sample.`;
}

function name(symbol, address, current) {
  const link = element("a", {href: address, "aria-current": current ? "true" : null}, symbol.name);
  const details = [symbol.name === symbol.symbol ? "" : symbol.symbol, symbol.unit].filter(Boolean).join(", ");
  return [line(link), details ? smallLine(details) : ""];
}

function last(symbol, usualDate) {
  if (!symbol.last_date) return "none";
  const age = symbol.stale ? element("strong", {class: "old"}, ago(symbol.age)) : ago(symbol.age);
  return [line(lastPrice(symbol)), symbol.last_date === usualDate ? "" : smallLine(symbol.last_date), smallLine(age)];
}

function ahead(symbol, h, usualDate, dateText) {
  if (symbol.missing) return "none yet";
  const one = symbol.ranges[h];
  const unchanged = symbol.previous_date === symbol.last_date;
  return [line(element("strong", null, one.low === null ? price(one.median, symbol.decimals) : range(one.low, one.high, symbol.decimals))), smallLine(unchanged ? "no new price" : changeOf(one, symbol)),
    one.date === usualDate ? "" : smallLine(dateText(one.date))];
}

function coverage(symbol, horizon, pending) {
  const one = symbol.ranges.find((each) => each.rows === horizon.rows);
  if (!one?.coverage) return pending ? "computing…" : "none yet";
  return [line(`${percent(one.coverage.share)} of ${one.coverage.forecasts}`), smallLine(`${one.coverage.independent} independent`),
    one.in_sample ? smallLine("Out of sample: no") : ""];
}

function contract(symbol, today) {
  if (!symbol.contract) return "spot";
  return [line(symbol.contract_month ? month(symbol.contract_month) : symbol.contract), symbol.next_roll ? smallLine(`${symbol.next_roll <= today ? "rolled" : "rolls"} ${symbol.next_roll}`) : ""];
}

// First line of the page if forecasts start from old prices, else nothing.
export function staleness(page) {
  const known = page.symbols.filter((one) => one.last_date), old = known.filter((one) => one.stale);
  if (!old.length) return "";
  const oldest = old.reduce((a, b) => (a.age_days >= b.age_days ? a : b)), newest = old.reduce((a, b) => (a.age_days <= b.age_days ? a : b));
  const ages = oldest.age === newest.age ? `${newest.age} old (${newest.last_date})` : `${newest.age} (${newest.last_date}) to ${oldest.age} (${oldest.last_date}) old`;
  const whose = old.length === known.length ? (old.length === 1 ? "the last price is" : "the last prices are")
    : `the last price${old.length === 1 ? "" : "s"} of ${old.length <= 3 ? old.map((one) => one.name).join(", ") : `${old.length} of ${known.length} commodities`} ${old.length === 1 ? "is" : "are"}`;
  return paragraph(element("strong", null, `Old prices: ${whose} ${ages}.`), " The ranges start there, not today.");
}
