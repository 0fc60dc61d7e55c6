"""The command line `course`."""
