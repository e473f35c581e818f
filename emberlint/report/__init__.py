"""What becomes of findings: the formats they are written in, the baseline that holds them, the lines that changed."""
