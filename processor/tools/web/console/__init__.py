"""The operators' console: pages in a browser that show what the verbs show, and make their edits."""
