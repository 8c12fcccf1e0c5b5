"""Ratings and payoffs: functions from results of battles to strengths."""
