"""Echelon: team-versus-team mech battles on procedural voxel terrain, for multi-agent reinforcement learning."""
