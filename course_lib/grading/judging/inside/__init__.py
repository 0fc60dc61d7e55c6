"""What runs inside the sandbox: it builds the walls, and then runs answers and decides no grade."""
