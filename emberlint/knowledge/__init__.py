"""What is known before any program is read: the engines, what their functions return, and what was measured."""
