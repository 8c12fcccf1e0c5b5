"""The batched battle engine: all rules of the game as compiled kernels over record arrays."""
