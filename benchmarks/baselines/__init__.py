"""The table of baselines: methods of this field trained for the same time on a processor, and the suite's players."""
