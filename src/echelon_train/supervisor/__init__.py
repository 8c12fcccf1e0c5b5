"""A whole league kept going by one process: learners, rating matches, promotions and retirement."""
