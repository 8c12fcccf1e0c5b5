"""Matchmaking: opponents of learners and matches of rating runs."""
