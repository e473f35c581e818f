"""What each command of the program does."""
