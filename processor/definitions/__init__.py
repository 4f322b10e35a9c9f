"""Definitions: the YAML that authors write, checked and made into the model; and the model written back."""
