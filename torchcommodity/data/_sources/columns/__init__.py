"""From the cells of a column to dates, prices and names."""
