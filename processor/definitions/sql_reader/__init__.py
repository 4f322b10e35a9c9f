"""The readers of SQL that authors write: a parser (the only module that imports sqlglot), and products given as a query. Pure."""
