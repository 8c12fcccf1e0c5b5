"""Matches of the league: planning, processes and replays."""
