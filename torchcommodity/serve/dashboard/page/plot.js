// Drawing and zooming of figures by plotly, which is loaded when the first figure is drawn.

let plotly;

function loadPlotly() {
  plotly ??= new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement("script"), {src: "page/plotly.min.js", onload: resolve});
    script.onerror = () => { plotly = undefined; script.remove(); reject(new Error("plotly failed to load")); };
    document.head.append(script);
  });
  return plotly;
}

const boxOf = (id) => document.getElementById(`chart-${id}`);

export async function draw(figures) {
  try { await loadPlotly(); } catch {
    for (const id of Object.keys(figures)) boxOf(id)?.replaceChildren("The chart failed to load. The tables have the same numbers.");
    return;
  }
  for (const [id, {data, layout}] of Object.entries(figures)) {
    const box = boxOf(id);
    if (!box) continue;
    if (!box.classList.contains("js-plotly-plot")) box.replaceChildren();
    await window.Plotly.react(box, data, layout, {responsive: true, displayModeBar: false, scrollZoom: false});
    box.dataset.drawn = "yes";
  }
}

// Halve the time that is shown, up to its end, and fit the axis of prices to it.
export function zoomIn(id) {
  const box = boxOf(id);
  if (!box?.dataset.drawn) return;
  // plotly's times have no zone; without one Date.parse reads days in UTC, times in the zone of the reader
  const [start, end] = box.layout.xaxis.range.map((day) => Date.parse(`${day}`.replace(/ (.*)/, "T$1Z")));
  const from = new Date(end - (end - start) / 2).toISOString(), to = new Date(end).toISOString();
  const shown = box.data.filter((trace) => trace.yaxis !== "y2")
    .flatMap((trace) => trace.y.filter((value, k) => value !== null && trace.x[k] >= from.slice(0, 10) && trace.x[k] <= to));
  const low = Math.min(...shown), high = Math.max(...shown), margin = 0.05 * (high - low || 1);
  const yaxis = box.layout.yaxis.fixedrange || !shown.length ? {} : {"yaxis.range": [low - margin, high + margin]};
  window.Plotly.relayout(box, {"xaxis.range": [from, to], ...yaxis});
}

export function resetZoom(id) {
  const box = boxOf(id);
  if (!box?.dataset.drawn) return;
  window.Plotly.relayout(box, {"xaxis.autorange": true, ...(box.layout.yaxis.fixedrange ? {} : {"yaxis.autorange": true})});
}
