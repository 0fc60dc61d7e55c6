"""Attention that a long text can afford: one variant, one file (lesson 12)."""
