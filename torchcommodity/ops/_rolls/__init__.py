"""Contract rolls of a front-month series: which rows contain their gaps, and what is expected of the coming ones."""
