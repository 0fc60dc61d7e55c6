"""What runs inside the sandbox. Nothing here decides, and nothing here is trusted."""
