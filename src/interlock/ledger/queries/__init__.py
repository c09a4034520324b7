"""What people and agents ask about sessions."""
