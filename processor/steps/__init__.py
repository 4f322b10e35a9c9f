"""The steps of the path, pure: decode, dedupe, write_state, find_roots, assemble, publish. None imports another."""
