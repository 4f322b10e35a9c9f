"""What verbs print: lines, bars, reports and certificates."""
