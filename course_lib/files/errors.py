"""What ends a command with one sentence: the message of each error here is one."""


class CommandError(Exception):
    """What the reader asks for cannot be done."""


class NotANotebook(CommandError, ValueError):
    """A file is no notebook of this course."""
