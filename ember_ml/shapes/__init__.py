"""Shape checks of operations, one file per category, for their definitions and for the engines; numbers only."""
