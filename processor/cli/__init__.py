"""The command: its verbs, a file for each subject, and one room for all that prints. `verb.py` says how a verb is declared."""
