"""Reporting of findings: output formats, the baseline, changed lines."""
