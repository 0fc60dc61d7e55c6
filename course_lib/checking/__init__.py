"""The engine of the exercises: what an exercise says, how an answer is tried, what it is told."""
