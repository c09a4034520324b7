"""A bounded search for ways past a gate: small workflows, everything an agent can send, a second oracle."""
