"""Attention that a long text can afford: one variant, one file, one row (lesson 12)."""
