"""Source files: reading and writing, text and lines, syntax trees."""
