"""One node in a simulated world: what puts it there, the clients around it, and who checks what it has."""
