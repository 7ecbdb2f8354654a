"""Conditional correlations: constant (CCC) and dynamic (DCC), their likelihood and their estimation."""
