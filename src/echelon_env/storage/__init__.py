"""Atomic file writes, and state as plain arrays."""
