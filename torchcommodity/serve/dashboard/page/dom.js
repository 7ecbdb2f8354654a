// Elements made of text and other elements: nothing that came from data is ever taken for markup.

const SHORT = 24; // characters of a cell that is not broken into lines

export const byId = (id) => document.getElementById(id);

export function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export const paragraph = (...children) => element("p", null, ...children);

// One box that scrolls by itself; the first cell of a row heads it, columns in `texts` hold words, the others numbers.
export function table(caption, heads, rows, {texts = [0], current = -1, narrow = false} = {}) {
  const side = (column, content) => (!texts.includes(column) ? "number" : typeof content === "string" && content.length <= SHORT ? "short" : null);
  const cell = (content, column) => column === 0
    ? element("th", {scope: "row", class: side(0, content)}, content)
    : element("td", {class: side(column, content)}, content);
  const body = rows.map((row, i) => element("tr", i === current ? {class: "current"} : null, row.map(cell)));
  return element("div", {class: narrow ? "scroll narrow" : "scroll", role: "region", tabindex: "0", "aria-label": caption},
    element("table", null,
      element("caption", null, element("span", null, caption)),
      element("thead", null, element("tr", null, heads.map((head, i) => element("th", {scope: "col", class: side(i)}, head)))),
      element("tbody", null, body)));
}

// Long tables are made when somebody opens them.
export function details(summary, make) {
  const box = element("details", null, element("summary", null, summary));
  box.addEventListener("toggle", () => { if (box.open && box.children.length === 1) box.append(make()); });
  return box;
}

export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return element("dl", {class: "facts"}, known.map(([name, value]) => [element("dt", null, name), element("dd", null, value)]));
}

// A place for a chart; where it cannot be seen its words stand.
export function figure(id, words, caption, kind = "chart") {
  return element("figure", null,
    element("div", {id: `chart-${id}`, class: kind, role: "img", "aria-label": words}, element("p", null, "Loading the chart …")),
    element("figcaption", null, caption));
}

export const code = (text) => element("code", null, text);
