// Charts of the numbers that the tables hold, in the colors of the page.

import {bands} from "./words.js";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
// plotly reads a little markup in its labels: nothing of the data may be some
export const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const short = (text) => (text.length > 14 ? `${text.slice(0, 13)}…` : text);

function line(x, y, ink, name, more = {}) {
  return {type: "scatter", mode: "lines", connectgaps: true, x, y, name, line: {color: ink, width: 1.8}, ...more};
}

function band(x, low, high, shade, name) {
  const edge = {line: {width: 0, color: shade}, hoverinfo: "skip"};
  return [line(x, low, shade, name, {...edge, showlegend: false}), line(x, high, shade, name, {...edge, fill: "tonexty", fillcolor: shade})];
}

function framed(xaxis, yaxis, more = {}) {
  const axis = {gridcolor: color("line"), linecolor: color("line"), zeroline: false, automargin: true, fixedrange: true};
  return {
    font: {family: "system-ui, sans-serif", size: 13, color: color("ink")},
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: {l: 8, r: 12, t: 8, b: 8},
    hovermode: "x unified", hoverlabel: {bgcolor: color("paper"), font: {color: color("ink")}},
    legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0},
    xaxis: {...axis, ...xaxis}, yaxis: {...axis, ...yaxis}, ...more,
  };
}

const upright = (x, ink) => ({type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: {color: ink, width: 1, dash: "dot"}});
const shades = () => ({50: color("band50"), 80: color("band80"), 90: color("band90")});

// Recent prices, then the bands up to the chosen horizon; the nearer it is, the fewer days before it.
export function fan(symbol, chosen) {
  const ahead = symbol.forecasts.filter((forecast) => forecast.rows <= chosen.rows);
  const x = [symbol.origin, ...ahead.map((forecast) => forecast.date)];
  const from = -Math.min(symbol.recent.dates.length, Math.max(60, Math.min(260, 4 * chosen.rows)));
  const path = (level) => [symbol.last, ...ahead.map((forecast) => forecast.quantiles[level])];
  const data = bands(ahead[0].quantiles).reverse()
    .flatMap(([low, high, width]) => band(x, path(low), path(high), shades()[width], `${width} % band`));
  data.push(line(symbol.recent.dates.slice(from), symbol.recent.prices.slice(from), color("ink"), "price"));
  if ("0.5" in ahead[0].quantiles) data.push(line(x, path("0.5"), color("accent"), "median", {mode: "lines+markers"}));
  const layout = framed({type: "date"}, {title: {text: plain(short(symbol.unit || "price"))}}, {shapes: [upright(symbol.origin, color("muted"))]});
  return {data, layout};
}

// Bands of past forecasts on the days that they were for, and the prices of those days.
export function past(symbol, found, days, seen) {
  const x = found.target.map((row) => days[row]);
  const data = bands(found.quantiles).reverse()
    .flatMap(([low, high, width]) => band(x, found.quantiles[low], found.quantiles[high], shades()[width], `${width} % band`));
  if ("0.5" in found.quantiles) data.push(line(x, found.quantiles["0.5"], color("accent"), "median", {line: {color: color("accent"), width: 1.2, dash: "dot"}}));
  data.push(line(x, found.realized, color("ink"), "what happened"));
  const ended = seen >= x[0] && seen < x.at(-1) ? [upright(seen, color("muted"))] : [];
  return {data, layout: framed({type: "date"}, {title: {text: plain(short(symbol.unit || "price"))}}, {shapes: ended})};
}

// The share of outcomes inside each band, over the bar in which that of a perfect forecast would lie.
export function coverage(records, horizons) {
  const inks = [color("accent"), color("mark"), color("ink")], data = [];
  records[0].bands.forEach((stated, b) => {
    const y = records.map((one) => horizons.findIndex((horizon) => horizon.rows === one.horizon) + (b - 1) * 0.24);
    const bar = {x: records.flatMap((one) => [...one.bands[b].chance, null]), y: y.flatMap((place) => [place, place, null])};
    const name = `${Math.round(100 * stated.stated)} % band`;
    data.push(line(bar.x, bar.y, inks[b], name, {connectgaps: false, opacity: 0.28, line: {color: inks[b], width: 7}, hoverinfo: "skip", showlegend: false}));
    data.push(line(records.map((one) => one.bands[b].held), y, inks[b], name, {mode: "markers", marker: {size: 10, color: inks[b]}, hovertemplate: "%{x:.1%}"}));
  });
  const layout = framed({range: [-0.02, 1.03], tickformat: ".0%", tickvals: [0, 0.25, 0.5, 0.75, 1]}, {tickvals: horizons.map((_, i) => i), ticktext: horizons.map((one) => one.name), autorange: "reversed"},
    {hovermode: "closest", shapes: records[0].bands.map((one, b) => upright(one.stated, inks[b]))});
  return {data, layout};
}

export function correlation(found) {
  const path = line(found.dates, found.mean, color("accent"), "average correlation");
  const layout = framed({type: "date"}, {range: [-1, 1], title: {text: "average correlation of pairs"}},
    {showlegend: false, shapes: found.changes.map((day) => upright(day, color("mark")))});
  return {data: [path], layout};
}

export function matrix(found) {
  const places = found.symbols.map((_, i) => i), names = found.symbols.map((name) => plain(short(name)));
  const scale = [[0, color("mark")], [0.5, color("soft")], [1, color("accent")]];
  const heat = {type: "heatmap", x: places, y: places, z: found.latest, zmin: -1, zmax: 1, colorscale: scale,
    texttemplate: "%{z:.2f}", hovertemplate: "%{z:.2f}<extra></extra>", xgap: 2, ygap: 2,
    colorbar: {thickness: 10, outlinewidth: 0, tickvals: [-1, 0, 1]}};
  const axis = {tickvals: places, ticktext: names, showgrid: false};
  return {data: [heat], layout: framed(axis, {...axis, autorange: "reversed"}, {hovermode: "closest"})};
}

let library;

function loaded() {
  library ??= new Promise((done, failed) => {
    const script = Object.assign(document.createElement("script"), {src: "page/plotly.min.js", onload: done});
    script.onerror = () => { library = undefined; script.remove(); failed(new Error("no charts")); };
    document.head.append(script);
  });
  return library;
}

export async function draw(figures) {
  try { await loaded(); } catch {
    for (const id of Object.keys(figures)) document.getElementById(`chart-${id}`)?.replaceChildren("The chart could not be loaded; the tables hold the same numbers.");
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
