"""One module a command: ``add`` declares its arguments, and names the function that carries it out."""
