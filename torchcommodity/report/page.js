"use strict";
(async () => {
  const say = (text) => document.querySelectorAll(".chart").forEach((box) => { box.innerHTML = ""; box.append(Object.assign(document.createElement("p"), {textContent: text})); });
  const held = document.getElementById("plotly");
  try {
    const packed = Uint8Array.from(atob(held.textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const code = document.createElement("script");
    code.textContent = await new Response(stream).text();
    document.head.append(code);
    held.remove();
  } catch (error) {
    say("This browser cannot unpack the charts (it knows no DecompressionStream); the tables hold the same numbers.");
    return;
  }
  const figures = JSON.parse(document.getElementById("figures").textContent);
  for (const [id, figure] of Object.entries(figures)) {
    const box = document.getElementById(id);
    box.textContent = "";
    await Plotly.newPlot(box, figure.data, figure.layout, {responsive: true, displayModeBar: false, scrollZoom: false});
    await new Promise((next) => setTimeout(next, 0));
  }
  document.documentElement.dataset.drawn = Object.keys(figures).length;
})();
