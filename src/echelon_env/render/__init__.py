"""Pictures of battles: frames, text and films."""
