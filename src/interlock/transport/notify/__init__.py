"""The channels that notifications go to. They are imported only where one is configured."""
