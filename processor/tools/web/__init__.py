"""What people and programs open over HTTP: the operators' console, look-ups, and the catalogue. MCP has the same look-ups.

They share the listener, the guard before every application, the problems, and the rendering of pages. `console` uses `serve` and
`catalogue`, and these two do not know each other. Only the verbs start one of them; no job needs this room.
"""
