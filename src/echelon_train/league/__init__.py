"""The league: a population of members, the record of their matches, their ratings, and who meets whom."""
