"""Telling what is wrong: known mistakes, differences, panels and hints."""
