"""Gradebooks that an instructor exported, filled in: `fill(results, template, ...)`.

They are no reports, which are made of the results alone: a gradebook needs a file of the
instructor's, is tried before anything is graded, and has remarks on what did not fit.
"""
