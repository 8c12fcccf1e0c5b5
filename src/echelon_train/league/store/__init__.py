"""The league's database: members, matches, ratings and promotions."""
