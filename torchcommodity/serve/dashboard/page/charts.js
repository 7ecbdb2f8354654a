// Plotly charts of the numbers in the tables, in the colors of the page.

import {bands} from "./format.js";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
// plotly interprets some markup in labels: escape the data
const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const shorten = (text) => (text.length > 14 ? `${text.slice(0, 13)}…` : text);
const bandColors = () => ({50: color("band50"), 80: color("band80"), 90: color("band90")});

function line(x, y, lineColor, name, options = {}) {
  return {type: "scatter", mode: "lines", connectgaps: true, x, y, name, line: {color: lineColor, width: 1.8}, ...options};
}

function band(x, low, high, fill, name) {
  const edge = {line: {width: 0, color: fill}, hoverinfo: "skip"};
  return [line(x, low, fill, name, {...edge, showlegend: false}), line(x, high, fill, name, {...edge, fill: "tonexty", fillcolor: fill})];
}

function makeLayout(xaxis, yaxis, options = {}) {
  const axis = {gridcolor: color("line"), linecolor: color("line"), zeroline: false, automargin: true, fixedrange: true};
  return {
    font: {family: "system-ui, sans-serif", size: 13, color: color("ink")},
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: {l: 8, r: 12, t: 8, b: 8},
    hovermode: "x unified", hoverlabel: {bgcolor: color("paper"), font: {color: color("ink")}},
    legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0},
    xaxis: {...axis, ...xaxis}, yaxis: {...axis, ...yaxis}, ...options,
  };
}

const verticalLine = (x, lineColor) => ({type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: {color: lineColor, width: 1, dash: "dot"}});
const unitAxis = (symbol) => ({title: {text: escape(shorten(symbol.unit || "price"))}});

// Recent prices, then the intervals up to the selected horizon; a shorter horizon shows fewer recent days.
export function fan(symbol, selected) {
  const forecasts = symbol.forecasts.filter((forecast) => forecast.rows <= selected.rows);
  const x = [symbol.origin, ...forecasts.map((forecast) => forecast.date)];
  const start = -Math.min(symbol.recent.dates.length, Math.max(60, Math.min(260, 4 * selected.rows)));
  const path = (level) => [symbol.last, ...forecasts.map((forecast) => forecast.quantiles[level])];
  const data = bands(forecasts[0].quantiles).reverse()
    .flatMap(([low, high, width]) => band(x, path(low), path(high), bandColors()[width], `${width}% interval`));
  data.push(line(symbol.recent.dates.slice(start), symbol.recent.prices.slice(start), color("ink"), "price"));
  if ("0.5" in forecasts[0].quantiles) data.push(line(x, path("0.5"), color("accent"), "median", {mode: "lines+markers"}));
  return {data, layout: makeLayout({type: "date"}, unitAxis(symbol), {shapes: [verticalLine(symbol.origin, color("muted"))]})};
}

// Intervals of past forecasts on their target dates, and the prices on those dates.
export function past(symbol, forecasts, days, trainedThrough) {
  const x = forecasts.target.map((row) => days[row]);
  const data = bands(forecasts.quantiles).reverse()
    .flatMap(([low, high, width]) => band(x, forecasts.quantiles[low], forecasts.quantiles[high], bandColors()[width], `${width}% interval`));
  if ("0.5" in forecasts.quantiles) data.push(line(x, forecasts.quantiles["0.5"], color("accent"), "median", {line: {color: color("accent"), width: 1.2, dash: "dot"}}));
  data.push(line(x, forecasts.outcomes, color("ink"), "outcome"));
  const shapes = trainedThrough >= x[0] && trainedThrough < x.at(-1) ? [verticalLine(trainedThrough, color("muted"))] : [];
  return {data, layout: makeLayout({type: "date"}, unitAxis(symbol), {shapes})};
}

// Coverage of each interval, over the range expected of a calibrated forecast.
export function coverage(records, horizons) {
  const colors = [color("accent"), color("mark"), color("ink")], data = [];
  records[0].bands.forEach((nominal, b) => {
    const y = records.map((record) => horizons.findIndex((horizon) => horizon.rows === record.horizon) + (b - 1) * 0.24);
    const bar = {x: records.flatMap((record) => [...record.bands[b].expected_range, null]), y: y.flatMap((row) => [row, row, null])};
    const name = `${Math.round(100 * nominal.nominal)}% interval`;
    data.push(line(bar.x, bar.y, colors[b], name, {connectgaps: false, opacity: 0.28, line: {color: colors[b], width: 7}, hoverinfo: "skip", showlegend: false}));
    data.push(line(records.map((record) => record.bands[b].coverage), y, colors[b], name, {mode: "markers", marker: {size: 10, color: colors[b]}, hovertemplate: "%{x:.1%}"}));
  });
  const layout = makeLayout({range: [-0.02, 1.03], tickformat: ".0%", tickvals: [0, 0.25, 0.5, 0.75, 1]},
    {tickvals: horizons.map((_, i) => i), ticktext: horizons.map((horizon) => horizon.name), autorange: "reversed"},
    {hovermode: "closest", shapes: records[0].bands.map((nominal, b) => verticalLine(nominal.nominal, colors[b]))});
  return {data, layout};
}

export function correlation(result) {
  const average = line(result.dates, result.mean, color("accent"), "average correlation");
  const layout = makeLayout({type: "date"}, {range: [-1, 1], title: {text: "average pairwise correlation"}},
    {showlegend: false, shapes: result.changes.map((day) => verticalLine(day, color("mark")))});
  return {data: [average], layout};
}

export function matrix(result) {
  const indices = result.symbols.map((_, i) => i), names = result.symbols.map((name) => escape(shorten(name)));
  const colorscale = [[0, color("mark")], [0.5, color("soft")], [1, color("accent")]];
  const heatmap = {type: "heatmap", x: indices, y: indices, z: result.latest, zmin: -1, zmax: 1, colorscale,
    texttemplate: "%{z:.2f}", hovertemplate: "%{z:.2f}<extra></extra>", xgap: 2, ygap: 2,
    colorbar: {thickness: 10, outlinewidth: 0, tickvals: [-1, 0, 1]}};
  const axis = {tickvals: indices, ticktext: names, showgrid: false};
  return {data: [heatmap], layout: makeLayout(axis, {...axis, autorange: "reversed"}, {hovermode: "closest"})};
}

let plotly;

function loadPlotly() {
  plotly ??= new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement("script"), {src: "page/plotly.min.js", onload: resolve});
    script.onerror = () => { plotly = undefined; script.remove(); reject(new Error("plotly failed to load")); };
    document.head.append(script);
  });
  return plotly;
}

export async function draw(figures) {
  try { await loadPlotly(); } catch {
    for (const id of Object.keys(figures)) document.getElementById(`chart-${id}`)?.replaceChildren("The chart failed to load. The tables have the same numbers.");
    return;
  }
  for (const [id, {data, layout}] of Object.entries(figures)) {
    const box = document.getElementById(`chart-${id}`);
    if (!box) continue;
    if (!box.classList.contains("js-plotly-plot")) box.replaceChildren();
    await window.Plotly.react(box, data, layout, {responsive: true, displayModeBar: false, scrollZoom: false});
    box.dataset.drawn = "yes";
  }
}
