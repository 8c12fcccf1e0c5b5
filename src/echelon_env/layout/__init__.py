"""The indices of every observation and action entry, which kernels, spaces and docs share."""
