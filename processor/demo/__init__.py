"""The data of the demos: real GitHub events, turned into the change streams of a source database, and the sample of the tour."""
