"""The demos: real GitHub events as the change streams of a source database, the tour of a small sample, and a live source."""
