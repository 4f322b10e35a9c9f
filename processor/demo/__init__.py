"""The demo's data: real GitHub events retold as what a source database would have sent."""
