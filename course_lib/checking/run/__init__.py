"""How an answer is tried: what may not be called, standard questions and laws."""
