// What is shown, and when: loading, a token, an error, no prices, or the dashboard of one commodity and horizon.

import * as charts from "./charts.js";
import {byId, element} from "./dom.js";
import * as sections from "./sections.js";

const AGAIN = 1000; // ms between two looks while the server works
const RENEW = 5 * 60 * 1000; // ms after which an open page asks for newer prices
const SECTIONS = ["empty", "forecast", "all", "past", "coverage", "correlation", "data", "model"];
let shown = null, asked = 0;

// Read aloud always; seen only while the page itself does not show it.
function say(words, quiet = false) {
  byId("status").textContent = words;
  byId("status").classList.toggle("quiet", quiet);
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function keep(...names) {
  for (const name of SECTIONS) byId(name).hidden = !names.includes(name);
  for (const name of ["choose", "sections"]) byId(name).hidden = !names.includes("forecast");
  for (const item of byId("sections").querySelectorAll("a")) item.parentElement.hidden = !names.includes(item.hash.slice(1));
}

// What somebody has opened stays open.
function put(name, parts) {
  const body = byId(name).querySelector(".body");
  const open = [...body.querySelectorAll("details")].map((one) => one.open);
  body.replaceChildren(...parts.filter((part) => part !== ""));
  body.querySelectorAll("details").forEach((one, i) => { one.open = open[i] ?? false; });
}

function complain(title, words, again) {
  const retry = element("button", {type: "button"}, "Try again");
  retry.addEventListener("click", () => look());
  byId("alert").replaceChildren(element("h2", null, title), element("p", null, words), again ? retry : "");
}

const calm = () => { byId("alert").replaceChildren(); byId("token").hidden = true; };

// The answer of the server: [status, document], status 0 where it cannot be reached.
async function ask() {
  const token = sessionStorage.getItem("token");
  try {
    const answer = await fetch("dashboard", {cache: "no-store", headers: token ? {Authorization: `Bearer ${token}`} : {}});
    const text = await answer.text();
    try { return [answer.status, JSON.parse(text)]; } catch { return [answer.status, {}]; }
  } catch { return [0, {}]; }
}

async function look({quietly = false} = {}) {
  const mine = ++asked, began = Date.now();
  if (!quietly) { calm(); say(shown ? "Asking for newer prices …" : "Loading: the server reads prices and makes the forecasts …"); }
  for (;;) {
    const [status, found] = await ask();
    if (mine !== asked) return;
    if (status === 202) {
      byId("waiting").hidden = false;
      byId("seconds").textContent = `${Math.round((Date.now() - began) / 1000)} s`;
      if (!shown && found.model) { keep("model"); put("model", sections.model(found.model)); }
      await pause(AGAIN);
      continue;
    }
    byId("waiting").hidden = true;
    if (status === 200 && found.state === "ready") renewed(found); else if (status === 200) none(found); else failed(status, found);
    if (status !== 200 || !found.renewing) return;
    await pause(2 * AGAIN);
  }
}

// The same document again is not drawn again: somebody may be reading.
function renewed(found) {
  const same = shown?.made === found.made && shown.problem === found.problem;
  shown = found;
  if (same && !byId("alert").hasChildNodes()) return;
  calm();
  show();
}

function none(found) {
  shown = null;
  calm();
  keep("empty", "model");
  put("empty", sections.empty(found.how));
  put("model", sections.model(found.model));
  head(found.model);
  say("No prices were given to this server.");
  document.title = "No prices · Price forecasts";
}

function failed(status, found) {
  if (status === 401 || status === 403) return askToken();
  const again = shown ? " What is shown below is from before." : "";
  if (status === 0) complain("The server cannot be reached", `It does not answer. It may be restarting, or the network may be down.${again}`, true);
  else if (status === 503 && found.model) complain("The prices cannot be shown", `The server says: ${found.error.message}`, true);
  else complain("The server could not answer", `It answered with status ${status}${found.error?.message ? `: ${found.error.message}` : ""}.${again}`, true);
  if (!shown) {
    keep(...(found.model ? ["model"] : []));
    if (found.model) { put("model", sections.model(found.model)); head(found.model); }
    document.title = "Error · Price forecasts";
  }
  say("");
}

function askToken() {
  const refused = sessionStorage.getItem("token") !== null;
  sessionStorage.removeItem("token");
  shown = null;
  keep();
  say("");
  byId("old").hidden = true;
  byId("token").hidden = false;
  byId("alert").replaceChildren(refused
    ? element("p", null, "The server did not accept this token.")
    : element("p", null, "This server asks for an access token. It is kept in this tab only, until the tab is closed."));
  document.title = "Access token · Price forecasts";
  byId("secret").focus();
}

const hashOf = (symbol, horizon) => `#${encodeURIComponent(symbol.symbol)}/${encodeURIComponent(horizon.code)}`;

function chosen() {
  const [name, code] = location.hash.slice(1).split("/").map((part) => { try { return decodeURIComponent(part); } catch { return ""; } });
  const near = shown.horizons.find((one) => one.code === "1m") ?? shown.horizons[0];
  const symbol = code === undefined ? null : shown.symbols.find((one) => one.symbol === name);
  const unknown = code !== undefined && !symbol ? name : null;
  return {symbol: symbol ?? shown.symbols[0], horizon: shown.horizons.find((one) => one.code === code) ?? near, unknown};
}

function head(about, prices) {
  const names = about.symbols.slice(0, 6).join(", ") + (about.symbols.length > 6 ? ` and ${about.symbols.length - 6} more` : "");
  byId("lead").textContent = prices ? `${names}. Prices to ${prices.last}; model trained through ${about.trained_through}.` : `Model of ${names}, trained through ${about.trained_through}.`;
  byId("foot").textContent = `torchcommodity ${about.version}, artifact ${about.sha256.slice(0, 12)}`;
}

function warn() {
  const {prices, problem} = shown, words = [];
  if (prices.stale) words.push(element("p", null, element("strong", null, `These prices are old: the last price is ${prices.age} old (${prices.last}).`), " The forecasts start from that day, not from today."));
  const late = prices.columns.filter((one) => one.stale && !prices.stale).map((one) => `${one.symbol} (${one.age})`);
  if (late.length) words.push(element("p", null, `Old last prices: ${late.join(", ")}.`));
  if (problem) words.push(element("p", null, `Newer prices could not be read, what is shown was made ${shown.made}. The server says: ${problem}`));
  byId("old").replaceChildren(...words);
  byId("old").hidden = !words.length;
}

function choices({symbol, horizon}) {
  const made = byId("symbol").dataset.of !== JSON.stringify(shown.symbols.map((one) => one.symbol));
  if (made) {
    byId("symbol").dataset.of = JSON.stringify(shown.symbols.map((one) => one.symbol));
    byId("symbol").replaceChildren(...shown.symbols.map((one) => element("option", {value: one.symbol}, one.symbol)));
    byId("horizon").replaceChildren(byId("horizon").firstElementChild, ...shown.horizons.map((one) => element("label", null,
      element("input", {type: "radio", name: "horizon", value: one.code}), element("span", null, one.name))));
  }
  byId("symbol").value = symbol.symbol;
  for (const radio of byId("horizon").querySelectorAll("input")) radio.checked = radio.value === horizon.code;
}

function show() {
  const {symbol, horizon, unknown} = chosen();
  keep("forecast", ...(shown.symbols.length > 1 ? ["all"] : []), "past", "coverage", "correlation", "data", "model");
  head(shown.model, shown.prices);
  warn();
  choices({symbol, horizon});
  byId("forecast-heading").textContent = `${symbol.symbol}, ${horizon.name} ahead`;
  put("forecast", sections.forecast(shown, symbol, horizon));
  put("all", sections.all(shown, symbol, horizon, hashOf));
  put("past", sections.past(shown, symbol, horizon));
  put("coverage", sections.coverage(shown, symbol));
  put("correlation", sections.correlation(shown));
  put("data", sections.data(shown, symbol));
  put("model", sections.model(shown.model));
  byId("foot").textContent += `, shown as of ${shown.made}`;
  document.title = `${symbol.symbol}, ${horizon.name} · Price forecasts`;
  if (unknown === null) say(`Showing ${symbol.symbol}, ${horizon.name} ahead.`, true);
  else say(`There is no ${unknown} here; showing ${symbol.symbol}.`);
  paint(symbol, horizon);
}

function paint(symbol, horizon) {
  const figures = {}, past = symbol.past.find((one) => one.rows === horizon.rows);
  if (!symbol.missing) figures.fan = charts.fan(symbol, horizon);
  if (past?.target.length) figures.past = charts.past(symbol, past, shown.days, shown.model.trained_through);
  const judged = sections.judged(shown, symbol);
  if (judged.length) figures.coverage = charts.coverage(judged, shown.horizons);
  if (!shown.correlation.missing) Object.assign(figures, {correlation: charts.correlation(shown.correlation), matrix: charts.matrix(shown.correlation)});
  charts.draw(figures);
}

byId("choose").addEventListener("submit", (event) => event.preventDefault());
byId("choose").addEventListener("change", () => {
  const symbol = shown.symbols.find((one) => one.symbol === byId("symbol").value);
  const code = byId("horizon").querySelector("input:checked").value;
  location.hash = hashOf(symbol, shown.horizons.find((one) => one.code === code));
});
byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", byId("secret").value);
  byId("secret").value = "";
  look();
});
// Links inside the page go to their place and leave the choice in the address as it is.
function goTo(heading, event) {
  event.preventDefault();
  heading.focus({preventScroll: true});
  heading.scrollIntoView();
}
document.querySelector(".skip").addEventListener("click", (event) => goTo(byId("main"), event));
byId("sections").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (link) goTo(byId(`${link.hash.slice(1)}-heading`), event);
});
byId("all").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  goTo(byId("forecast-heading"), event);
  location.hash = link.hash;
});
addEventListener("hashchange", () => { if (shown && (location.hash.includes("/") || !location.hash)) show(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (shown) show(); });
setInterval(() => { if (byId("token").hidden && !document.hidden) look({quietly: true}); }, RENEW);
look();
