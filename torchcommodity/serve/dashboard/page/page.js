// State of the page: loading, token, error, no prices, or the dashboard of the selected commodity and horizon.

import * as charts from "./charts.js";
import {download} from "./csv.js";
import {byId, element} from "./dom.js";
import {title} from "./format.js";
import {matrix} from "./matrix.js";
import {outlook, staleness} from "./outlook.js";
import {draw, resetZoom, zoomIn} from "./plot.js";
import * as sections from "./sections.js";
import {source} from "./source.js";

const POLL_MS = 1000; // between requests while the server works
const REFRESH_MS = 5 * 60 * 1000; // between requests for newer prices
const SECTIONS = ["empty", "outlook", "forecast", "past", "coverage", "correlation", "source"];
let page = null, requests = 0;

// Screen readers always announce the status; `quiet` hides it where the page itself shows the same.
function setStatus(text, quiet = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("quiet", quiet);
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function showOnly(...names) {
  for (const name of SECTIONS) byId(name).hidden = !names.includes(name);
  for (const name of ["selection", "sections"]) byId(name).hidden = !names.includes("forecast");
  for (const item of byId("sections").querySelectorAll("a")) item.parentElement.hidden = !names.includes(item.hash.slice(1));
}

// Opened tables stay open.
function fill(name, parts) {
  const body = byId(name).querySelector(".body");
  const open = [...body.querySelectorAll("details")].map((box) => box.open);
  body.replaceChildren(...parts.filter((part) => part !== ""));
  body.querySelectorAll("details").forEach((box, i) => { box.open = open[i] ?? false; });
}

function showAlert(title, text) {
  const retry = element("button", {type: "button"}, "Try again");
  retry.addEventListener("click", () => load());
  byId("alert").replaceChildren(element("h2", null, title), element("p", null, text), retry);
}

const clearAlert = () => { byId("alert").replaceChildren(); byId("token").hidden = true; };

// [HTTP status, document]; status 0 if the server cannot be reached.
async function fetchDocument() {
  const token = sessionStorage.getItem("token");
  try {
    const response = await fetch("dashboard", {cache: "no-store", headers: token ? {Authorization: `Bearer ${token}`} : {}});
    const text = await response.text();
    try { return [response.status, JSON.parse(text)]; } catch { return [response.status, {}]; }
  } catch { return [0, {}]; }
}

async function load({quiet = false} = {}) {
  const request = ++requests, start = Date.now();
  if (!quiet) { clearAlert(); setStatus(page ? "Checking for newer prices…" : "Loading prices and forecasts…"); }
  for (;;) {
    const [status, content] = await fetchDocument();
    if (request !== requests) return;
    if (status === 202) {
      byId("waiting").hidden = false;
      byId("seconds").textContent = `${Math.round((Date.now() - start) / 1000)} s`;
      if (!page && content.model) { showOnly("source"); fill("source", source(content.model)); }
      await sleep(POLL_MS);
      continue;
    }
    byId("waiting").hidden = true;
    if (status === 200 && content.state !== "empty") update(content); else if (status === 200) showEmpty(content); else showError(status, content);
    if (status !== 200 || !content.refreshing) return;
    await sleep(2 * POLL_MS);
  }
}

// An unchanged document is not drawn again, so that the reader keeps the place.
function update(content) {
  const unchanged = ["created", "state", "refresh_error"].every((name) => page?.[name] === content[name]);
  page = content;
  if (unchanged && !byId("alert").hasChildNodes()) return;
  clearAlert();
  show();
}

function showEmpty(content) {
  page = null;
  clearAlert();
  showOnly("empty", "source");
  fill("empty", sections.empty(content.instructions));
  fill("source", source(content.model));
  showHead(content.model);
  setStatus("The server has no prices.", true);
  document.title = "No prices · Price forecasts";
}

function showError(status, content) {
  if (status === 401 || status === 403) return askToken();
  const outdated = page ? " The numbers below are from the last successful update." : "";
  const message = content.error?.message;
  if (status === 0) showAlert("Server unreachable", `The server does not respond. It may be restarting, or the network may be down.${outdated}`);
  else if (status === 503 && content.model) showAlert("Prices cannot be loaded", message);
  else showAlert("Server error", `HTTP status ${status}${message ? `: ${message}` : ""}.${outdated}`);
  if (!page) {
    showOnly(...(content.model ? ["source"] : []));
    if (content.model) { fill("source", source(content.model)); showHead(content.model); }
    document.title = "Error · Price forecasts";
  }
  setStatus("");
}

function askToken() {
  const rejected = sessionStorage.getItem("token") !== null;
  sessionStorage.removeItem("token");
  page = null;
  showOnly();
  setStatus("");
  byId("warnings").hidden = true;
  byId("token").hidden = false;
  byId("alert").replaceChildren(element("p", null, rejected
    ? "The server rejected this token."
    : "This server requires an access token. It is stored only in this tab, until the tab is closed."));
  document.title = "Access token · Price forecasts";
  byId("secret").focus();
}

const hashOf = (symbol, horizon) => `#${encodeURIComponent(symbol.symbol)}/${encodeURIComponent(horizon.code)}`;

// Symbol and horizon of the address, `#WTI/1m`; by default the first symbol, one month ahead.
function selection() {
  const [name, horizonCode] = location.hash.slice(1).split("/").map((part) => { try { return decodeURIComponent(part); } catch { return ""; } });
  const fallback = page.horizons.find((one) => one.code === "1m") ?? page.horizons[0];
  const symbol = horizonCode === undefined ? null : page.symbols.find((one) => one.symbol === name);
  const unknown = horizonCode !== undefined && !symbol ? name : null;
  return {symbol: symbol ?? page.symbols[0], horizon: page.horizons.find((one) => one.code === horizonCode) ?? fallback, unknown};
}

function showHead(card, prices) {
  const names = card.symbols.slice(0, 6).join(", ") + (card.symbols.length > 6 ? ` and ${card.symbols.length - 6} more` : "");
  byId("lead").textContent = prices ? `Prices to ${prices.last}; model trained through ${card.trained_through}.` : `Model for ${names}, trained through ${card.trained_through}.`;
  const credits = new Set((prices?.columns ?? card.provenance).map((one) => one.credit).filter(Boolean));
  const version = `torchcommodity ${card.version}, artifact ${card.sha256.slice(0, 12)}${prices ? `, updated ${page.created}` : ""}`;
  byId("foot").replaceChildren(...[...credits, version].map((line) => element("p", null, line)));
}

function showWarnings() {
  const error = page.refresh_error, warnings = [staleness(page)];
  if (error) warnings.push(element("p", null, `Newer prices could not be loaded; this page is from ${page.created}. Error: ${error}`));
  byId("warnings").replaceChildren(...warnings.filter((one) => one !== ""));
  byId("warnings").hidden = !byId("warnings").hasChildNodes();
}

function showSelection({symbol, horizon}) {
  const symbols = JSON.stringify(page.symbols.map((one) => one.symbol));
  if (byId("symbol").dataset.symbols !== symbols) {
    byId("symbol").dataset.symbols = symbols;
    byId("symbol").replaceChildren(...page.symbols.map((one) => element("option", {value: one.symbol}, title(one))));
    byId("horizon").replaceChildren(byId("horizon").firstElementChild, ...page.horizons.map((one) => element("label", null,
      element("input", {type: "radio", name: "horizon", value: one.code}), element("span", null, one.name))));
  }
  byId("symbol").value = symbol.symbol;
  for (const radio of byId("horizon").querySelectorAll("input")) radio.checked = radio.value === horizon.code;
}

function show() {
  const {symbol, horizon, unknown} = selection();
  showOnly("outlook", "forecast", "past", "coverage", "correlation", "source");
  showHead(page.model, page.prices);
  showWarnings();
  showSelection({symbol, horizon});
  byId("forecast-heading").textContent = `${title(symbol)}, ${horizon.name} ahead`;
  fill("outlook", outlook(page, symbol, horizon, hashOf));
  fill("forecast", sections.forecast(page, symbol, horizon));
  fill("past", sections.past(page, symbol, horizon));
  fill("coverage", sections.coverage(page, symbol));
  fill("correlation", sections.correlation(page));
  fill("source", source(page.model, page));
  document.title = `${symbol.symbol}, ${horizon.name} · Price forecasts`;
  if (unknown === null) setStatus(`Showing ${symbol.symbol}, ${horizon.name} ahead.`, true);
  else setStatus(`Unknown commodity ${unknown}; showing ${symbol.symbol}.`);
  drawCharts(symbol, horizon);
}

function drawCharts(symbol, horizon) {
  const figures = {}, past = symbol.past.find((one) => one.rows === horizon.rows);
  if (!symbol.missing) figures.fan = charts.fan(symbol, horizon, page.model.frequency);
  if (past?.target.length) figures.past = charts.past(symbol, past, page.days, page.model.trained_through);
  const records = sections.coverageRecords(page, symbol);
  if (records.length) figures.coverage = charts.coverage(records, page.horizons);
  if (!page.correlation.missing) Object.assign(figures, {correlation: charts.correlation(page.correlation), matrix: matrix(page.correlation)});
  draw(figures);
}

byId("selection").addEventListener("submit", (event) => event.preventDefault());
byId("selection").addEventListener("change", () => {
  const symbol = page.symbols.find((one) => one.symbol === byId("symbol").value);
  const horizonCode = byId("horizon").querySelector("input:checked").value;
  location.hash = hashOf(symbol, page.horizons.find((one) => one.code === horizonCode));
});
byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", byId("secret").value);
  byId("secret").value = "";
  load();
});
// Links within the page scroll and leave the selection in the address unchanged.
function scrollTo(heading, event) {
  event.preventDefault();
  heading.focus({preventScroll: true});
  heading.scrollIntoView();
}
document.querySelector(".skip").addEventListener("click", (event) => scrollTo(byId("main"), event));
byId("sections").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (link) scrollTo(byId(`${link.hash.slice(1)}-heading`), event);
});
byId("outlook").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  scrollTo(byId("forecast-heading"), event);
  location.hash = link.hash;
});
byId("main").addEventListener("click", (event) => {
  const {csv, zoom, reset} = event.target.closest("button")?.dataset ?? {};
  const {symbol, horizon} = page ? selection() : {};
  if (csv) download(csv, page, symbol, horizon); else if (zoom) zoomIn(zoom); else if (reset) resetZoom(reset);
});
addEventListener("hashchange", () => { if (page && (location.hash.includes("/") || !location.hash)) show(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (page) show(); });
setInterval(() => { if (byId("token").hidden && !document.hidden) load({quiet: true}); }, REFRESH_MS);
load();
