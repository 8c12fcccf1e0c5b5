"""The settings of a training run, and the files that hold them."""
