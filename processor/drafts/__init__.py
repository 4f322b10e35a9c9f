"""Drafts of definitions from what is there: the tables of a database, the records of topics, the schemas of a registry."""
