"""Layouts of vendors and tools: one record per format, and the roles of the columns of a table."""
