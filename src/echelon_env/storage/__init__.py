"""Files that appear whole or not at all, and state as plain arrays."""
