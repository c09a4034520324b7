"""What the compiler decides where a file does not say it: beginnings, places of gates, what steps set."""
