"""The demo's data: real GitHub events, turned into the change streams of a source database."""
