"""Estimates of what was measured; pure functions."""
