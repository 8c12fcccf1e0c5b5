"""Training in the league: the learner, its opponents and their policies."""
