"""From paths to findings: listing, linting in processes, caching, suppressions and fixes."""
