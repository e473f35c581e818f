"""From paths to findings: files are listed, linted in processes, cached and fixed, and comments silence findings."""
