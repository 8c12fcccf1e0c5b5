"""The league's database: members, matches, ratings, and what changes them."""
