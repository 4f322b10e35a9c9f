"""The people who reach the console: their names, and their roles in the registry."""
