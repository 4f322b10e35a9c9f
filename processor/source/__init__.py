"""The source database itself: its tables, their rows in one snapshot, and the comparison of these rows with the table's."""
