"""Attention that a long text can afford: one variant, one file, one row (lessons 13 and 14)."""
