"""What a check of `statestore doctor` says."""
