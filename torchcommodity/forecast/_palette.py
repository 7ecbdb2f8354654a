"""Colors of pages and charts by name, in a light and a dark scheme; text has a contrast of at least 4.5 to 1."""

PALETTE = {
    "light": {
        "paper": "#ffffff", "ink": "#1c2733", "muted": "#51606e", "line": "#d5dce3", "grid": "#e3e8ed",
        "accent": "#0b5c8a", "mark": "#b3461b", "warn": "#fdf3e7", "better": "#22632a", "worse": "#9a3412",
        "band50": "#6e9dbb", "band80": "#a9c6d8", "band90": "#d3e2ec", "median": "#073b59", "soft": "#f4f6f8",
        "series3": "#3d7a3a", "series4": "#7a4a9c", "series5": "#8fb8d0", "series6": "#c8a24a",
    },
    "dark": {
        "paper": "#12181f", "ink": "#e4e9ee", "muted": "#a3b0bc", "line": "#2f3a45", "grid": "#26313b",
        "accent": "#6cb6e0", "mark": "#e58b5f", "warn": "#33261a", "better": "#7fca87", "worse": "#f0946a",
        "band50": "#4f83a3", "band80": "#37596f", "band90": "#263c4c", "median": "#d7ecfa", "soft": "#1b232c",
        "series3": "#7cc278", "series4": "#bf94dd", "series5": "#b4d8ec", "series6": "#e0c070",
    },
}  # fmt: skip


def palette_css() -> str:
    """The colors as CSS variables, such as `--ink`, in the scheme that the reader's system prefers."""
    light, dark = (_rule(scheme, colors) for scheme, colors in PALETTE.items())
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _rule(scheme: str, colors: dict[str, str]) -> str:
    variables = " ".join(f"--{name}: {color};" for name, color in colors.items())
    return f":root {{ {variables} color-scheme: {scheme}; }}"
