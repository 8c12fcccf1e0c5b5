"""Atomic file writes, bounded reads, and state as plain arrays."""
