"""What a panel is: prices by date and symbol, their names, dates, contracts and provenance."""
