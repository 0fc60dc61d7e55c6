"""AnswerRun an answer: what may not be called, standard questions and laws."""
