"""Covariates with the days on which their values were published."""
