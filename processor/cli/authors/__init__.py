"""The verbs of an author of products: definitions, plans and documents."""
