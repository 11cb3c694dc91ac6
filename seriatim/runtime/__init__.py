"""What happens while agents run: dispatch, servers, and the two executors."""
