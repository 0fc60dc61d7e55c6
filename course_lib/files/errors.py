"""What a command refuses."""


class Refused(Exception):
    """What the reader asks for cannot be done; the message is one sentence."""
