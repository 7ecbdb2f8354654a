"""Headers of the server's pages, which load nothing from other hosts."""

PAGE_HEADERS = {
    # plotly and Swagger UI add inline styles; scripts come from files of the page only
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
