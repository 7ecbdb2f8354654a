// Numbers as people read them.

export function price(value) {
  if (value === null || value === undefined) return "none";
  const format = Math.abs(value) >= 10 ? {minimumFractionDigits: 2, maximumFractionDigits: 2} : {maximumSignificantDigits: 4};
  return value.toLocaleString("en", format).replace("-", "\u2212");
}

export const percent = (share, digits = 1) => (share === null ? "none" : `${(100 * share).toFixed(digits)}\u00a0%`);
export const signed = (share, digits = 1) => `${share < 0 ? "\u2212" : "+"}${Math.abs(100 * share).toFixed(digits)}\u00a0%`;
export const range = (low, high) => `${price(low)} to ${price(high)}`;
export const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

const BANDS = [["0.25", "0.75", 50], ["0.1", "0.9", 80], ["0.05", "0.95", 90]];
export const bands = (quantiles) => BANDS.filter(([low, high]) => low in quantiles && high in quantiles);

// Where the k-th outcome of past forecasts lies.
export function outcome(past, k) {
  const known = bands(past.quantiles), value = past.realized[k];
  for (const [low, high, width] of known) {
    if (value >= past.quantiles[low][k] && value <= past.quantiles[high][k]) return {words: `inside the ${width}\u00a0% band`, width};
  }
  if (!known.length) return {words: "no band was stated", width: null};
  const [low, , width] = known.at(-1);
  const side = value < past.quantiles[low][k] ? "below" : "above";
  return {words: `${side} the ${width}\u00a0% band`, width: 0};
}
