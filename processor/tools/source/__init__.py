"""The source database: drafts of definitions from its catalogue or topics, and its rows in one snapshot against the table's."""
