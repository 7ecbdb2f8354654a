// Numbers, dates and names as text.

const NONE = "none";

export function price(value, decimals) {
  if (value === null || value === undefined) return NONE;
  return value.toLocaleString("en", {minimumFractionDigits: decimals, maximumFractionDigits: decimals}).replace("-", "\u2212");
}

const known = (value) => value !== null && value !== undefined;
export const percent = (share, digits = 0) => (known(share) ? `${(100 * share).toFixed(digits)} %` : NONE);
export const change = (share, digits = 1) => `${share < 0 ? "\u2212" : "+"}${Math.abs(100 * share).toFixed(digits)} %`;
export const coefficient = (value) => value.toFixed(2).replace(/^-0\.00$/, "0.00").replace("-", "\u2212");
export const range = (low, high, decimals) => (known(low) ? `${price(low, decimals)} to ${price(high, decimals)}` : NONE);
export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
export const yesNo = (value) => (value ? "yes" : "no");
export const ago = (age) => (age === "today" ? "today" : `${age} ago`);

// The product's name, and the name of its prices where that is another.
export const title = (symbol) => (symbol.name === symbol.symbol ? symbol.symbol : `${symbol.name} (${symbol.symbol})`);
export const unitSuffix = (symbol) => (symbol.unit ? ` ${symbol.unit}` : "");
export const lastPrice = (symbol) => price(symbol.last_price, symbol.quoted_decimals);

// 2024-03 as Mar 2024.
export const month = (text) => new Date(`${text}-01T00:00Z`).toLocaleDateString("en", {month: "short", year: "numeric", timeZone: "UTC"});

// A change of a price that may be negative, in its unit.
export const priceChange = (value, decimals) => `${value < 0 ? "" : "+"}${price(value, decimals)}`;

// Change of a range of a symbol since the previous forecast, in words.
export function changeOf(one, symbol) {
  if (!known(one.median_change) || !known(one.width_change)) return "";
  const width = Math.round(100 * Math.abs(one.width_change));
  const direction = width === 0 ? "same width" : `${width} % ${one.width_change < 0 ? "narrower" : "wider"}`;
  return `${symbol.signed ? priceChange(one.median_change, symbol.decimals) : change(one.median_change)}, ${direction}`;
}

export const sortedLevels = (quantiles) => Object.keys(quantiles).sort((a, b) => a - b);

// Ranges between quantiles, narrowest first: [lower level, upper level, percent]. The rule of `forecast.intervals`: 50, 80 and
// 90 % where all their levels are known, else those nearest to 50 and to 80 %, and the widest.
const STANDARD = [50, 80, 90], MAIN = 80;
const nearest = (pairs, percent) => pairs.reduce((a, b) => (Math.abs(b[2] - percent) < Math.abs(a[2] - percent) ? b : a));

// Of ascending levels, those whose mirror image is a level too, widest first.
function pairsOf(levels) {
  return levels.flatMap((low) => {
    const high = low < 0.5 ? levels.find((level) => Math.abs(1 - low - level) < 1e-6) : undefined;
    return high === undefined ? [] : [[low, high, Math.round(1e4 * (high - low)) / 100]];
  });
}

export function bands(quantiles) {
  const pairs = pairsOf(sortedLevels(quantiles)), standard = pairs.filter(([, , width]) => STANDARD.includes(width)).reverse();
  if (standard.length === STANDARD.length || !pairs.length) return standard;
  return [...new Set([nearest(pairs, 50), nearest(pairs, MAIN), pairs[0]])].sort((a, b) => a[2] - b[2]);
}

// The range of the tables: the one nearest to 80 %; nothing where the levels have none.
export function mainBand(quantiles) {
  const ranges = bands(quantiles);
  return ranges.length ? nearest(ranges, MAIN) : undefined;
}
// Its name on the whole page, "80 % range".
export function mainRange(page) {
  const pairs = pairsOf(page.model.levels.map(String));
  return pairs.length ? `${nearest(pairs, MAIN)[2]} %` : "";
}

// The narrowest range that contains the k-th outcome; width 0 = outside all, null = there are no ranges.
export function position(past, k) {
  const ranges = bands(past.quantiles), value = past.outcomes[k];
  for (const [low, high, width] of ranges) {
    if (value >= past.quantiles[low][k] && value <= past.quantiles[high][k]) return {text: `inside the ${width} % range`, width};
  }
  if (!ranges.length) return {text: "no range", width: null};
  const [low, , width] = ranges.at(-1);
  const side = value < past.quantiles[low][k] ? "below" : "above";
  return {text: `${side} the ${width} % range`, width: 0};
}
