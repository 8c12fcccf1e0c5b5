"""Commands of `echelon` that need the extra ``[train]``; their modules import it only when they run."""
