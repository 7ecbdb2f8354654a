// DOM elements from text and other elements; data is never parsed as markup.

const MAX_NOWRAP = 24; // characters of a cell that is not wrapped
const MAX_COLUMNS = 4; // of a table that is not stacked on a phone

export const byId = (id) => document.getElementById(id);

export function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

export const paragraph = (...children) => element("p", null, ...children);
export const small = (...children) => element("span", {class: "small"}, ...children);

const labelOf = (header) => header.label ?? header;
const contentOf = (header) => header.content ?? header;

// Table; a header is a text, or {label, content}; the first cell of a row is its header, `texts` are the columns of text, the others are numbers. On a phone each
// row of a wide table is stacked, with its headers as labels; the roles keep it a table for screen readers.
export function table(caption, headers, rows, {texts = [0], current = -1, narrow = false, stacked = headers.length > MAX_COLUMNS} = {}) {
  const cellClass = (column, content) => (!texts.includes(column) ? "number" : typeof content === "string" && content.length <= MAX_NOWRAP ? "short" : null);
  const cell = (content, column) => column === 0
    ? element("th", {scope: "row", role: "rowheader", class: cellClass(0, content)}, content)
    : element("td", {role: "cell", class: cellClass(column, content), "data-label": labelOf(headers[column])}, content);
  const body = rows.map((row, i) => element("tr", {role: "row", class: i === current ? "current" : null}, row.map(cell)));
  const head = headers.map((header, i) => element("th", {scope: "col", role: "columnheader", class: cellClass(i)}, contentOf(header)));
  return element("div", {class: `scroll${narrow ? " narrow" : ""}`, role: "region", tabindex: "0", "aria-label": [caption].flat()[0]},
    element("table", {role: "table", class: stacked ? "stacked" : "plain"},
      element("caption", null, element("span", null, caption)),
      element("thead", {role: "rowgroup"}, element("tr", {role: "row"}, head)),
      element("tbody", {role: "rowgroup"}, body)));
}

// Collapsed content, built when it is first opened.
export function details(summary, build) {
  const box = element("details", null, element("summary", null, summary));
  box.addEventListener("toggle", () => { if (box.open && box.children.length === 1) box.append(build()); });
  return box;
}

// Definition list without the pairs that have no value.
export function definitions(pairs) {
  const known = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return element("dl", {class: "definitions"}, known.map(([name, value]) => [element("dt", null, name), element("dd", null, value)]));
}

const button = (label, attributes) => element("button", {type: "button", class: "tool", ...attributes}, label);
export const csvButton = (file, label) => button("Download CSV", {"data-csv": file, "aria-label": `Download ${label} as CSV`});

// Placeholder of a chart with its description for screen readers; one over time can be zoomed.
export function figure(id, description, caption, {zoom = false} = {}) {
  const tools = zoom ? element("div", {class: "tools"}, button("Zoom in", {"data-zoom": id}), button("Reset zoom", {"data-reset": id})) : "";
  return element("figure", null,
    element("div", {id: `chart-${id}`, class: "chart", role: "img", "aria-label": description}, element("p", null, "Loading chart…")),
    tools, element("figcaption", null, caption));
}

export const code = (text) => element("code", null, text);
