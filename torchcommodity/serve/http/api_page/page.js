// Fetches the OpenAPI document, with the token of this tab where the server requires one, and shows it in Swagger UI.

const byId = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);

async function load() {
  const token = sessionStorage.getItem("token");  // the dashboard's page stores it too
  const response = await fetch("openapi.json", {headers: token ? {Authorization: `Bearer ${token}`} : {}});
  byId("token").hidden = response.status !== 401;
  if (response.status === 401) {
    sessionStorage.removeItem("token");
    byId("message").textContent = token === null
      ? "This server requires an access token. It is stored only in this tab, until the tab is closed."
      : "The server rejected this token.";
  } else if (!response.ok) {
    throw new Error(`status ${response.status}`);
  } else {
    byId("message").textContent = "";
    show(await response.json(), token);
  }
}

function show(spec, token) {
  const onComplete = () => { if (token) ui.preauthorizeApiKey("token", token); };
  const ui = SwaggerUIBundle({
    spec, domNode: byId("api"), deepLinking: true, defaultModelsExpandDepth: 0, validatorUrl: null, onComplete,
  });
}

const start = () => load().catch((error) => { byId("message").textContent = `The server cannot be reached: ${error.message}`; });

byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", byId("secret").value);
  start();
});
dark.addEventListener("change", followScheme);
followScheme();
start();
