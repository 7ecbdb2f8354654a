// The last section: what the forecasts are for and are not, the prices they start from, and the model.

import {code, definitions, details, element, paragraph, table} from "./dom.js";
import {ago, plural, title} from "./format.js";

// Prices are missing while the first document is made, and on a server without prices.
export function source(card, page = null) {
  return [
    paragraph(card.use),
    element("ul", null, card.limitations.map((limitation) => element("li", null, limitation))),
    ...(page ? prices(page) : []),
    ...model(card),
  ];
}

const contractOf = (symbol) => symbol.contract ?? "spot";

function prices({prices: all, symbols, findings}) {
  const rows = all.columns.map((one, n) => [title(symbols[n]), contractOf(symbols[n]), one.last ? `${one.last}, ${ago(one.age)}` : "none", one.publisher, one.series, one.license, one.location, one.retrieved, code(one.sha256.slice(0, 16))]);
  const issues = findings.map((one) => [one.kind, one.symbol, one.date, String(one.line || ""), one.value, String(one.count), one.treatment]);
  const signed = symbols.filter((one) => one.signed).map((one) => one.symbol);
  const publishers = [...new Set(all.columns.map((one) => one.publisher).filter(Boolean))];
  return [
    element("h3", null, "Prices"),
    paragraph(`Source: ${all.source}, ${plural(all.rows, "row")} from ${all.first} to ${all.last}${publishers.length === 1 ? ` (${publishers[0]})` : ""}. Prices are neither adjusted nor filled nor dropped. A missing, zero or negative price has no log-return; the next return spans the gap.${signed.length ? ` Those of ${signed.join(", ")} may be negative: changes of asinh(P / S) take the place of log-returns.` : ""}`),
    details("Source of each commodity's prices", () => table("Source of each commodity's prices", ["Commodity", "Contract", "Last price", "Publisher", "Series", "License", "URL or file", "Retrieved", "SHA-256 (start)"], rows, {texts: [0, 1, 2, 3, 4, 5, 6, 7, 8]})),
    issues.length ? details(`Data issues and how they are treated (${issues.length})`, () => table("Data issues and how they are treated", ["Issue", "Symbol", "Date", "Line", "Value", "Count", "Treatment"], issues, {texts: [0, 1, 2, 4, 6]}))
      : paragraph("No data issues."),
  ];
}

function model(card) {
  const trained = card.provenance.map((one) => [one.symbol, one.publisher, one.license, one.location, code(one.sha256.slice(0, 16))]);
  const commodities = card.symbols.map((name, n) => (card.contract_names[n] ? `${name} (${card.contract_names[n]})` : name));
  const horizons = card.horizons.map((rows, i) => `${card.horizon_names[i]} (${plural(rows, "row")})`);
  return [
    element("h3", null, "Model"),
    definitions([
      ["Commodities", commodities.join(", ")],
      ["Horizons", horizons.join(", ")],
      ["Quantile levels", card.levels.map((level) => `${Math.round(1000 * level) / 10} %`).join(", ")],
      ["Model", card.model], ["Training", card.note], ["Trained through", card.trained_through],
      ["Warm-up", `${card.warmup} returns`], ["Supported dates", card.calendar.join(" to ")],
      ["Format", card.format], ["Written by", `torchcommodity ${card.version}, torch ${card.torch}`], ["SHA-256", code(card.sha256)],
      ["Documentation", card.docs.join(", ")],
    ]),
    trained.length ? details("Source of the training prices", () => table("Source of the training prices", ["Commodity", "Publisher", "License", "URL or file", "SHA-256 (start)"], trained, {texts: [0, 1, 2, 3, 4]}))
      : paragraph("The artifact does not record the source of its training prices."),
  ];
}
