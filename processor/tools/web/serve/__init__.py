"""Documents and rows by key, for programs over HTTP and for assistants over MCP. Reads only, in a process of its own."""
