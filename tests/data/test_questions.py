"""General questions: the words that begin an answer are followed by the right one."""

from course_lib.data.questions import CAPITALS, beginning, questions


def test_an_answer_is_begun_by_the_words_of_its_question():
    begun = [beginning(question) for question, _ in questions() if "the capital" in question]
    assert begun == [f"The capital of {country} is" for country in CAPITALS]
