"""The store protocol and its adapters: SQL, and nothing about workflows."""
