"""The channels that notifications go to. Each is imported when it is used first."""
