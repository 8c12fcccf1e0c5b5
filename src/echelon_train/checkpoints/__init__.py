"""Policies on disk: checkpoints, where they come from, and the players that they become."""
