"""A training run: its parts, its folder, its checkpoints and its evaluation."""
