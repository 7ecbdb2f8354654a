// Heat map of pairwise correlations, with numbers that can be read on every color.

import {color, escape, isNarrow, makeLayout, shorten} from "./charts.js";
import {coefficient} from "./format.js";

const parse = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
const mix = (from, to, share) => parse(from).map((channel, i) => Math.round(channel + share * (parse(to)[i] - channel)));

// Black or white, whichever has more contrast (at least 4.5 to 1); by the relative luminance of WCAG 2.
function textColor(background) {
  const [red, green, blue] = background.map((channel) => channel / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

// Of the commodities that have a correlation; on a phone the cells have room for colors only.
export function matrix(result) {
  const known = result.symbols.map((_, i) => i).filter((i) => result.latest[i].some((value, j) => j !== i && value !== null));
  const indices = known.map((_, i) => i), names = known.map((i) => escape(shorten(result.symbols[i]))), z = known.map((i) => known.map((j) => result.latest[i][j]));
  const [low, middle, high] = [color("mark"), color("soft"), color("accent")];
  const heatmap = {type: "heatmap", x: indices, y: indices, z, zmin: -1, zmax: 1, colorscale: [[0, low], [0.5, middle], [1, high]],
    hovertemplate: "%{z:.2f}<extra></extra>", xgap: 2, ygap: 2, colorbar: {thickness: 10, outlinewidth: 0, tickvals: [-1, 0, 1]}};
  const label = (value, x, y) => ({x, y, text: coefficient(value), showarrow: false, font: {size: 12, color: textColor(mix(middle, value < 0 ? low : high, Math.abs(value)))}});
  const hasRoom = !isNarrow() || known.length <= 5;
  const annotations = hasRoom ? z.flatMap((row, y) => row.map((value, x) => (value === null ? null : label(value, x, y)))).filter(Boolean) : [];
  const axis = {tickvals: indices, ticktext: names, showgrid: false, tickfont: {size: isNarrow() ? 10 : 12}};
  return {data: [heatmap], layout: makeLayout(axis, {...axis, autorange: "reversed"}, {hovermode: "closest", annotations})};
}
