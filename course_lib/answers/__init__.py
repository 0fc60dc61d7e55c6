"""What may run beside a stranger's code: the handle on an answer, its process, their messages.

Nothing here decides anything: cases, references and points are in `checking`. The sandbox of the
grader sees every module of this folder.
"""
