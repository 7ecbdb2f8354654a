/* Search in pages that are opened from a folder: browsers start no Worker for a file, so its script runs in a hidden frame. */
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = Object.assign(document.createElement("iframe"), { hidden: true, title: "Search" });
    this.scope = new Promise((resolve) => {
      const start = () => {
        const scope = frame.contentWindow;
        scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        const script = scope.document.createElement("script");
        script.src = new URL(url, location.href);
        script.addEventListener("load", () => resolve(scope));
        scope.document.body.append(script);
      };
      frame.addEventListener("load", start, { once: true });
    });
    document.body.append(frame);
  }

  postMessage(data) {
    this.scope.then((scope) => scope.dispatchEvent(new scope.MessageEvent("message", { data })));
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
