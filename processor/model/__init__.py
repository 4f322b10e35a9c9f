"""The words of the system as plain values: entities, records, changes, products, plans, documents."""
