"""From a source to prices: open a table, convert its columns, find their roles, build the panel; and write it again."""
