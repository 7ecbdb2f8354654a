"use strict";
const read = (id) => document.getElementById(id).textContent;
const tag = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const button = (text, onclick) => tag("button", {type: "button", textContent: text, onclick});

function save(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], {type}));
  tag("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// Charts have the light colors; in a dark scheme each is replaced by the dark one of the same name. A hidden chart is drawn
// when it is shown, also after a change of scheme.
const scheme = matchMedia("(prefers-color-scheme: dark)");
const {light, dark} = JSON.parse(read("palette"));
const darkOf = Object.fromEntries(Object.entries(light).map(([name, color]) => [color, dark[name]]));
const schemeName = () => (scheme.matches ? "dark" : "light");
const figures = () => JSON.parse(read("figures"), (_, value) => (scheme.matches && darkOf[value]) || value);

async function loadPlotly() {
  const library = document.getElementById("plotly");
  const compressed = Uint8Array.from(atob(library.textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = tag("script", {textContent: await new Response(stream).text()});
  document.head.append(script);
  library.remove();
}

// By name: the default ones would upload the chart.
const BUTTONS = [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]];
const title = (box) => box.closest(".panel")?.querySelector("h3")?.textContent ?? box.id.replace("chart-", "");
const fileName = (box) => title(box).match(/[\p{L}\p{N}]+/gu)?.join("-") ?? "chart";
const isShown = (box) => box.offsetParent !== null;

// A finger on a chart scrolls the page; the buttons of the chart zoom.
async function draw(boxes) {
  const all = figures(), touch = matchMedia("(pointer: coarse)").matches;
  for (const box of boxes) {
    const {data, layout} = all[box.id];
    if (!box.dataset.drawn) box.textContent = "";
    const config = {responsive: true, displaylogo: false, displayModeBar: true, modeBarButtons: BUTTONS, toImageButtonOptions: {filename: fileName(box), scale: 2}};
    await Plotly.react(box, data, {...layout, ...(touch ? {dragmode: false} : {})}, config);
    box.dataset.drawn = schemeName();
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  document.documentElement.dataset.charts = document.querySelectorAll("[data-drawn]").length;
}

const boxes = () => [...document.querySelectorAll(".chart")];
const drawShown = () => draw(boxes().filter((box) => isShown(box) && box.dataset.drawn !== schemeName()));

// The main interval of a fan chart on a day, between the points of the chart in the square root of time.
function rangeOn(figure, day, digits) {
  const [low, high] = figure.data.filter((trace) => trace.meta === "main");
  const median = figure.data.find((trace) => trace.name === "median");
  const time = (text) => Math.sqrt(Math.max(0, Date.parse(text) - Date.parse(low.x[0])));
  const right = Math.max(1, low.x.findIndex((date) => date >= day));
  const weight = (time(day) - time(low.x[right - 1])) / (time(low.x[right]) - time(low.x[right - 1]));
  const isLog = [low, high, median].every((trace) => trace.y.every((price) => price > 0));
  const [scale, inverse] = isLog ? [Math.log, Math.exp] : [(price) => price, (value) => value];
  const at = (y) => inverse((1 - weight) * scale(y[right - 1]) + weight * scale(y[right]))
    .toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits});
  return `${low.name.replace("interval", "range")} ${at(low.y)} to ${at(high.y)}, median ${at(median.y)}`;
}

function dayInput(box) {
  const figure = figures()[box.id], fan = figure.data.find((trace) => trace.meta === "main");
  if (!fan || !figure.data.some((trace) => trace.name === "median")) return [];
  const output = tag("output", {}), input = tag("input", {type: "date", min: fan.x[1], max: fan.x.at(-1), value: fan.x.at(-1)});
  const show = () => {
    const isInside = input.value >= input.min && input.value <= input.max;
    output.textContent = isInside ? rangeOn(figure, input.value, +box.dataset.decimals) : `Choose a day from ${input.min} to ${input.max}, where the forecast ends.`;
  };
  input.oninput = show;
  show();
  return [tag("label", {}, "Range on ", input), output];
}

function addDayInputs() {
  for (const box of document.querySelectorAll(".chart[data-decimals]")) box.after(tag("div", {className: "tools"}, ...dayInput(box)));
}

// Blocks instead of table rows lose their roles in some browsers: state them.
function stateRoles() {
  const roles = {"": "table", "thead, tbody": "rowgroup", "tr": "row", "thead th": "columnheader", "tbody th": "rowheader", "td": "cell"};
  for (const table of document.querySelectorAll("table.stack")) {
    for (const [selector, role] of Object.entries(roles)) {
      for (const element of selector ? table.querySelectorAll(selector) : [table]) element.setAttribute("role", role);
    }
  }
}

// One commodity at a time; a link to a panel, such as #forecast-2, selects it.
function addSelection() {
  const selection = document.getElementById("selection"), panels = [...document.querySelectorAll(".panel")];
  if (!selection) return;
  const select = selection.querySelector("select");
  const show = (id) => {
    select.value = id;
    for (const panel of panels) panel.hidden = panel.id !== id;
    if (window.Plotly) drawShown();
  };
  const follow = () => {
    const id = location.hash.slice(1);
    if (!panels.some((panel) => panel.id === id)) return;
    show(id);
    document.getElementById(id).scrollIntoView();
  };
  select.onchange = () => show(select.value);
  addEventListener("hashchange", follow);
  selection.hidden = false;
  show(panels[0].id);
  follow();
}

// A phone shows the first six commodities, so that what follows stays within reach.
function limitRows() {
  const table = document.querySelector("table.outlook"), count = table?.tBodies[0].rows.length ?? 0;
  if (count <= 10) return;  // nearly all of them are there anyway
  table.classList.add("limited");
  const more = button(`Show all ${count} commodities`, () => { table.classList.remove("limited"); more.remove(); });
  more.className = "phone";
  table.parentElement.after(more);
}

(async () => {
  stateRoles();
  limitRows();
  addSelection();
  for (const [id, text] of Object.entries(JSON.parse(read("tables")))) {
    const tools = tag("div", {className: "tools"}, button("Save table (CSV)", () => save(`${id}.csv`, text, "text/csv")));
    document.getElementById(id).append(tools);
  }
  try {
    await loadPlotly();
  } catch {
    const text = "This browser cannot show the charts (it has no DecompressionStream); the tables have the same numbers.";
    for (const box of boxes()) box.replaceChildren(tag("p", {textContent: text}));
    return;
  }
  addDayInputs();
  await drawShown();
  for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", drawShown);
  scheme.addEventListener("change", drawShown);
})();
