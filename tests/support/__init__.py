"""What the tests share: agents, servers, stories, generated workflows."""
