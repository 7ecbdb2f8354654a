"""Futures: contracts, expiries, rolls, curves, and continuous series built from prices by contract."""
