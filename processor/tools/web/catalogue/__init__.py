"""The catalogue: definitions as a static site for the people who read documents. It has no server, and it needs no network."""
