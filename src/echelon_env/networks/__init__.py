"""Trained policies without PyTorch: their files, their weights, and their forward pass as a kernel."""
