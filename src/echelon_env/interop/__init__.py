"""Adapters to the interfaces of other libraries. None of these libraries needs to be installed to import them."""

from echelon_env.interop.smac import EPyMARLEnv, SMACEnv

__all__ = ["EPyMARLEnv", "SMACEnv"]
