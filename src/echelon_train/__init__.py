"""Training mech teams by self-play on `echelon_env`."""
