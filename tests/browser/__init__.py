"""The path of a newcomer through Lab, in a real browser: `make browser`."""
