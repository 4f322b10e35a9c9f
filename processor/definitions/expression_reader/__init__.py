"""The reader of the expressions that authors write: it resolves names, chooses overloads and checks types. Pure."""
