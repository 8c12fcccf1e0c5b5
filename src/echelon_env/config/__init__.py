"""Every number of the game: battles, maps, the catalogue, scenarios and curricula."""
