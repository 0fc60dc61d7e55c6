"""Proofs of the exercises: the laws, and the wrong answers that are derived by machine."""
