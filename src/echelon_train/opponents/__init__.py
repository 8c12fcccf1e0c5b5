"""Opponents in training: a player that draws one for every battle, by the weights of a run or by a league."""
