"""Pictures of single lessons: a module a lesson, a function a picture, each with its own words.

A page shows one in a line. Parts that several lessons draw are in `drawings` and `plots`.
"""
