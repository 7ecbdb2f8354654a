"""Data-quality checks; each finding names what is doubtful and how it was treated."""
