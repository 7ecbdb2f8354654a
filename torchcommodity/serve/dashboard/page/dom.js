// DOM elements from text and other elements; data is never parsed as markup.

const MAX_NOWRAP = 24; // characters of a cell that is not wrapped

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

// Scrollable table; the first cell of a row is its header, `texts` are the columns of text, the others are numbers.
export function table(caption, headers, rows, {texts = [0], current = -1, narrow = false} = {}) {
  const cellClass = (column, content) => (!texts.includes(column) ? "number" : typeof content === "string" && content.length <= MAX_NOWRAP ? "short" : null);
  const cell = (content, column) => column === 0
    ? element("th", {scope: "row", class: cellClass(0, content)}, content)
    : element("td", {class: cellClass(column, content)}, content);
  const body = rows.map((row, i) => element("tr", i === current ? {class: "current"} : null, row.map(cell)));
  return element("div", {class: narrow ? "scroll narrow" : "scroll", role: "region", tabindex: "0", "aria-label": caption},
    element("table", null,
      element("caption", null, element("span", null, caption)),
      element("thead", null, element("tr", null, headers.map((header, i) => element("th", {scope: "col", class: cellClass(i)}, header)))),
      element("tbody", null, body)));
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

// Placeholder of a chart, with its description for screen readers.
export function figure(id, description, caption) {
  return element("figure", null,
    element("div", {id: `chart-${id}`, class: "chart", role: "img", "aria-label": description}, element("p", null, "Loading chart…")),
    element("figcaption", null, caption));
}

export const code = (text) => element("code", null, text);
