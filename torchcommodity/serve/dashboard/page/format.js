// Numbers as text.

export function price(value) {
  if (value === null || value === undefined) return "none";
  const digits = Math.abs(value) >= 10 ? {minimumFractionDigits: 2, maximumFractionDigits: 2} : {maximumSignificantDigits: 4};
  return value.toLocaleString("en", digits).replace("-", "\u2212");
}

export const percent = (share, digits = 1) => (share === null ? "none" : `${(100 * share).toFixed(digits)}%`);
export const change = (share, digits = 1) => `${share < 0 ? "\u2212" : "+"}${Math.abs(100 * share).toFixed(digits)}%`;
export const range = (low, high) => `${price(low)} to ${price(high)}`;
export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

// Intervals between quantiles: [lower level, upper level, percent].
const BANDS = [["0.25", "0.75", 50], ["0.1", "0.9", 80], ["0.05", "0.95", 90]];
export const bands = (quantiles) => BANDS.filter(([low, high]) => low in quantiles && high in quantiles);

// The narrowest interval that contains the k-th outcome; width 0 = outside all, null = there are no intervals.
export function position(past, k) {
  const intervals = bands(past.quantiles), value = past.outcomes[k];
  for (const [low, high, width] of intervals) {
    if (value >= past.quantiles[low][k] && value <= past.quantiles[high][k]) return {text: `inside the ${width}% interval`, width};
  }
  if (!intervals.length) return {text: "no interval", width: null};
  const [low, , width] = intervals.at(-1);
  const side = value < past.quantiles[low][k] ? "below" : "above";
  return {text: `${side} the ${width}% interval`, width: 0};
}
