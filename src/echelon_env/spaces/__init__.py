"""Observation and action formats that users choose: spaces, conversion, masks and explanations."""
