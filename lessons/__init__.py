"""What authors edit: one percent-format file a lesson. `python -m lessons` makes the notebooks."""
