"""Figures over several seeds, one module an experiment: `make results`, or one lesson's alone.

A module names its LESSON and its SEEDS; `measure()` returns the figures, and `table(figures)`
the lines that sum them up. They are kept in research/results/, under the module's name.
"""
