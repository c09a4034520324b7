"""What a run is: values only."""
