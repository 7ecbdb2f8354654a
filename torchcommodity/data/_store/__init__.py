"""The store: panels in one DuckDB file, with every state that they had."""
