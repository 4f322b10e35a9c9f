"""Words for people that many rooms write: durations, lists cut short, the nearest name, tables."""
