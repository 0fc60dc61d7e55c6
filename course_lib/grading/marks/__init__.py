"""From verdicts to marks: entries, scores, and what a person marks."""
