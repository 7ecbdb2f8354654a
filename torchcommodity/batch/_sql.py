"""Values and names as they stand in SQL where no parameter may."""


def text(value: str) -> str:
    """A text.

    >>> text("panel's")
    "'panel''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """The name of a table or a column.

    >>> name("my prices")
    '"my prices"'
    """
    return '"' + value.replace('"', '""') + '"'
