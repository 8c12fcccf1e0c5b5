"""Builds the library of machine code that wheels bring; see README.md in this folder."""
