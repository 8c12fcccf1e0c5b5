"""Who plays whom: opponents of learners and matches of rating runs."""
