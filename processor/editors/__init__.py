"""Help for editors: JSON Schemas of the files that authors and operators write, made from the rules of their readers."""
