"""A whole league kept going by one process: learners, rating matches, promotions, retirement and probes."""
