"""The components of the course, one concept a module, in the order of their lessons."""
