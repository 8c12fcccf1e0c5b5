"""Maps: from a seed to voxels, spawn places and a zone."""
