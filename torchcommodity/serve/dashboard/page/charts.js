// Plotly figures of the numbers in the tables, in the colors of the page.

import {bands, price, range} from "./format.js";

export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
// plotly interprets some markup in labels: escape the data
export const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
export const shorten = (text) => (text.length > 14 ? `${text.slice(0, 13)}…` : text);

// The line connects across days without a price.
function line(x, y, lineColor, name, options = {}) {
  return {type: "scatter", mode: "lines", connectgaps: true, x, y, name, line: {color: lineColor, width: 1.8}, ...options};
}

const BAND_COLORS = ["band50", "band80", "band90"]; // from the narrowest

// Opaque, so that the legend shows the color of the band; the widest is drawn first.
function bandTraces(x, quantiles) {
  return bands(quantiles).map((band, rank) => [...band, BAND_COLORS[rank]]).reverse().flatMap(([low, high, width, bandColor]) => {
    const fill = color(bandColor), edge = {line: {width: 0, color: fill}, hoverinfo: "skip", legendrank: 1000 + width}, name = `${width} % range`;
    return [line(x, quantiles[low], fill, name, {...edge, showlegend: false}), line(x, quantiles[high], fill, name, {...edge, fill: "tonexty", fillcolor: fill})];
  });
}

// The lowest quantile as an invisible line whose label lists the ranges of its day.
function rangeLabels(x, quantiles, decimals) {
  const ranges = bands(quantiles), median = quantiles["0.5"];
  if (!ranges.length) return [];
  const text = x.map((_, k) => [...(median ? [`median ${price(median[k], decimals)}`] : []),
    ...ranges.map(([low, high, width]) => `${width} %: ${range(quantiles[low][k], quantiles[high][k], decimals)}`)].join("<br>"));
  return [line(x, quantiles[ranges.at(-1)[0]], "rgba(0,0,0,0)", "", {text, hovertemplate: "%{text}<extra></extra>", showlegend: false})];
}

export function makeLayout(xaxis, yaxis, options = {}) {
  const axis = {gridcolor: color("line"), linecolor: color("line"), zeroline: false, automargin: true, separatethousands: true, fixedrange: true};
  return {
    font: {family: "system-ui, sans-serif", size: 13, color: color("ink")},
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: {l: 8, r: 12, t: 8, b: 8},
    hovermode: "x unified", hoverlabel: {bgcolor: color("paper"), font: {color: color("ink")}},
    legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal"},
    xaxis: {...axis, ...xaxis}, yaxis: {...axis, ...yaxis}, ...options,
  };
}

export const isNarrow = () => innerWidth < 600;

// Dragging zooms where there is a mouse; on a touch screen it scrolls the page, and the buttons zoom.
function makeTimeLayout(yaxis, revision, options = {}) {
  const dragmode = matchMedia("(pointer: coarse)").matches ? false : "zoom";
  const layout = makeLayout({type: "date", fixedrange: false, hoverformat: "%Y-%m-%d", tickangle: 0, nticks: isNarrow() ? 4 : 7}, {fixedrange: false, ...yaxis}, {dragmode, uirevision: revision, ...options});
  // marks without a price have an axis of their own, from the bottom (0) to the top (1)
  return {...layout, yaxis2: {overlaying: "y", range: [0, 1], visible: false, fixedrange: true}};
}

const verticalLine = (x, lineColor) => ({type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: {color: lineColor, width: 1, dash: "dot"}});
const dateLabel = (x, text, y = 1) => ({x, y, yref: "paper", yanchor: "top", xanchor: "right", text, showarrow: false, font: {size: 12, color: color("muted")}, bgcolor: color("paper")});
const unitAxis = (symbol) => ({title: {text: escape(shorten(symbol.unit || "price"))}});

function rollMarks(days) {
  if (!days.length) return [];
  const marker = {symbol: "triangle-up", size: 9, color: color("mark")};
  return [line(days, days.map(() => 0.025), color("mark"), "contract roll", {mode: "markers", marker, yaxis: "y2", legendrank: 2000, hovertemplate: "contract roll<extra></extra>"})];
}

const select = (quantiles, rows) => Object.fromEntries(Object.entries(quantiles).map(([level, path]) => [level, rows.map((row) => path[row])]));

// Of daily rows after the first week, every fifth: with weekends in between, the edges of the bands would be jagged.
function drawnRows(last, frequency) {
  const all = Array.from({length: last + 1}, (_, row) => row);
  return frequency !== "daily" ? all : all.filter((row) => row <= 5 || row % 5 === 0 || row === last);
}

const MIN_HISTORY = {daily: 60, weekly: 26, monthly: 24}; // rows

// Recent prices, then the ranges up to the selected horizon; a shorter horizon shows fewer recent days.
export function fan(symbol, selected, frequency) {
  const {recent, fan: ahead} = symbol;
  const start = -Math.min(recent.dates.length, Math.max(MIN_HISTORY[frequency], Math.min(260, 4 * selected.rows)));
  const past = recent.dates.slice(start), rows = drawnRows(selected.rows, frequency), x = rows.map((row) => ahead.dates[row]), drawn = select(ahead.quantiles, rows);
  const days = ahead.dates.slice(1, selected.rows + 1), daily = select(ahead.quantiles, days.map((_, i) => i + 1));
  const data = bandTraces(x, drawn);
  if (drawn["0.5"]) data.push(line(x, drawn["0.5"], color("median"), "median", {legendrank: 2, hoverinfo: "skip", line: {color: color("median"), width: 1.8, dash: "dash"}}));
  data.push(line(past, recent.prices.slice(start), color("ink"), "price", {legendrank: 1, hovertemplate: `%{y:,.${symbol.quoted_decimals}f}<extra></extra>`}));
  data.push(...rangeLabels(days, daily, symbol.decimals));
  data.push(...rollMarks(symbol.rolls.filter((day) => day >= past[0] && day <= x.at(-1))));
  const options = {shapes: [verticalLine(symbol.last_date, color("muted"))], annotations: [dateLabel(symbol.last_date, `last price, ${symbol.last_date} `)]};
  return {data, layout: makeTimeLayout(unitAxis(symbol), `${symbol.symbol}/${selected.rows}`, options)};
}

// Ranges of past forecasts on their target dates, and the prices on those dates.
export function past(symbol, forecasts, days, trainedThrough) {
  const x = forecasts.target.map((row) => days[row]);
  const data = bandTraces(x, forecasts.quantiles);
  if (forecasts.quantiles["0.5"]) data.push(line(x, forecasts.quantiles["0.5"], color("median"), "median", {legendrank: 2, hoverinfo: "skip", line: {color: color("median"), width: 1.2, dash: "dot"}}));
  data.push(...rangeLabels(x, forecasts.quantiles, symbol.decimals));
  data.push(line(x, forecasts.outcomes, color("ink"), "price", {legendrank: 1, hovertemplate: `price %{y:,.${symbol.quoted_decimals}f}<extra></extra>`}));
  const inSample = trainedThrough >= x[0] && trainedThrough < x.at(-1);
  const options = inSample ? {shapes: [verticalLine(trainedThrough, color("muted"))], annotations: [dateLabel(trainedThrough, "trained through ")]} : {};
  return {data, layout: makeTimeLayout(unitAxis(symbol), `${symbol.symbol}/${forecasts.rows}`, options)};
}

// Coverage of each range, over the shares expected of a calibrated forecast.
export function coverage(records, horizons) {
  const colors = [color("accent"), color("mark"), color("ink")], data = [];
  records[0].bands.forEach((nominal, b) => {
    const y = records.map((record) => horizons.findIndex((horizon) => horizon.rows === record.horizon) + (b - 1) * 0.24);
    const bar = {x: records.flatMap((record) => [...record.bands[b].expected_range, null]), y: y.flatMap((row) => [row, row, null])};
    const name = `${Math.round(100 * nominal.nominal)} % range`;
    data.push(line(bar.x, bar.y, colors[b], name, {connectgaps: false, opacity: 0.28, line: {color: colors[b], width: 7}, hoverinfo: "skip", showlegend: false}));
    data.push(line(records.map((record) => record.bands[b].coverage), y, colors[b], name, {mode: "markers", marker: {size: 10, color: colors[b]}, hovertemplate: "%{x:.1%}"}));
  });
  const layout = makeLayout({range: [-0.02, 1.03], tickformat: ".0%", tickvals: [0, 0.25, 0.5, 0.75, 1]},
    {tickvals: horizons.map((_, i) => i), ticktext: horizons.map((horizon) => horizon.name), autorange: "reversed"},
    {hovermode: "closest", shapes: records[0].bands.map((nominal, b) => verticalLine(nominal.nominal, colors[b]))});
  return {data, layout};
}

export function correlation(result) {
  const average = line(result.dates, result.mean, color("accent"), "average correlation", {hovertemplate: "%{y:.2f}<extra></extra>"});
  const layout = makeTimeLayout({range: [-1, 1], fixedrange: true, title: {text: "average correlation of pairs"}}, "correlation",
    {showlegend: false, shapes: result.changes.map((day) => verticalLine(day, color("mark")))});
  return {data: [average], layout};
}
