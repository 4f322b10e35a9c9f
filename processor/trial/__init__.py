"""The same steps in one process and in memory: `statestore try`, and the tests of products. Pure."""
