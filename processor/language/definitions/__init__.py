"""Definitions: this package checks the YAML that authors write, makes the model from it, and writes the model back as YAML."""
