"""API page: Swagger UI over the OpenAPI document, from files of this server only."""

from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response
from starlette.exceptions import HTTPException

from torchcommodity.serve._page_headers import PAGE_HEADERS

PAGE = "/docs"
FOLDER = Path(__file__).parent / "api_page"
SWAGGER_UI = ("swagger-ui-bundle.js", "swagger-ui.css")
HEADERS = PAGE_HEADERS | {"Cache-Control": "no-cache"}


def make_api_page() -> APIRouter:
    """Routes `/docs` and `/docs/<file>`. They contain no prices and need no token; the page asks for it."""
    router = APIRouter(include_in_schema=False)
    # fastapi_offline ships Swagger UI; FastAPI's own page loads it from a CDN
    static = Path(str(files("fastapi_offline"))) / "static"
    paths = {name: static / name for name in SWAGGER_UI} | {name: FOLDER / name for name in ("page.css", "page.js")}

    @router.get(PAGE)
    async def page() -> Response:
        return FileResponse(FOLDER / "index.html", headers=HEADERS)

    @router.get(f"{PAGE}/{{name}}")
    async def page_file(name: str) -> Response:
        if name not in paths:
            raise HTTPException(404)
        return FileResponse(paths[name], headers=HEADERS)

    return router
