"""Matches of the league: planning, processes, Ray and replays."""
