"""The source database itself: its catalogue, its rows in one snapshot, and the comparison of these rows with the table's rows."""
