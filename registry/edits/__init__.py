"""An edit of the registry: what an apply, an operator, a step of the job or an undo changes in it. Pure."""
