"""The command line `course`: a file a command."""
