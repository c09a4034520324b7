"""What a request passes before a route sees it: its headers and body, who sends it, and how much that is."""
