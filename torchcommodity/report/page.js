"use strict";
(async () => {
  const showMessage = (text) => document.querySelectorAll(".chart").forEach((box) => {
    box.innerHTML = "";
    box.append(Object.assign(document.createElement("p"), {textContent: text}));
  });
  const library = document.getElementById("plotly");
  try {
    const compressed = Uint8Array.from(atob(library.textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    library.remove();
  } catch (error) {
    showMessage("This browser cannot show the charts (it has no DecompressionStream); the tables have the same numbers.");
    return;
  }
  const figures = JSON.parse(document.getElementById("figures").textContent);
  for (const [id, figure] of Object.entries(figures)) {
    const box = document.getElementById(id);
    box.textContent = "";
    await Plotly.newPlot(box, figure.data, figure.layout, {responsive: true, displayModeBar: false, scrollZoom: false});
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  document.documentElement.dataset.charts = Object.keys(figures).length;
})();
