"""Static knowledge of the linter: engines, types of their functions' results, the catalogue, the measured matrix."""
