"""Scripted players that read observations only."""
