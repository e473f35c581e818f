"""Run the tests of a package before and after a port, and find the cause of each test that no longer passes."""
