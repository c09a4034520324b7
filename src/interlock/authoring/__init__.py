"""From files to compiled, hashed workflows: formats, sources, diagnostics, simulation."""
