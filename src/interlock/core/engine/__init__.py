"""What a command brings about: pure functions of plan and state."""
