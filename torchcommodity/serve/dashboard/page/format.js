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

// Change of a range since the previous forecast, in words.
export function changeOf(one) {
  if (!known(one.median_change) || !known(one.width_change)) return "";
  const width = Math.round(100 * Math.abs(one.width_change));
  const direction = width === 0 ? "same width" : `${width} % ${one.width_change < 0 ? "narrower" : "wider"}`;
  return `${change(one.median_change)}, ${direction}`;
}

// Ranges between quantiles: [lower level, upper level, percent].
const BANDS = [["0.25", "0.75", 50], ["0.1", "0.9", 80], ["0.05", "0.95", 90]];
export const bands = (quantiles) => BANDS.filter(([low, high]) => low in quantiles && high in quantiles);

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
