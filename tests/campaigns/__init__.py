"""Campaigns against the engine and the trainer that anyone can run for hours; `make campaigns MINUTES=60` runs both."""
