"""Short questions with one right word each, to see what a model that answers knows and forgets."""

CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin", "Japan": "Tokyo",
    "Egypt": "Cairo", "Russia": "Moscow", "China": "Beijing", "Greece": "Athens",
    "Portugal": "Lisbon", "Austria": "Vienna", "Poland": "Warsaw", "Sweden": "Stockholm",
    "Norway": "Oslo", "Finland": "Helsinki", "Denmark": "Copenhagen", "Ireland": "Dublin",
    "Hungary": "Budapest", "Cuba": "Havana", "Peru": "Lima", "Canada": "Ottawa",
    "Australia": "Canberra", "Turkey": "Ankara", "Kenya": "Nairobi", "Thailand": "Bangkok",
    "Belgium": "Brussels", "South Korea": "Seoul", "Argentina": "Buenos Aires",
}  # fmt: skip
OPPOSITES = {
    "hot": "cold", "big": "small", "up": "down", "left": "right", "day": "night",
    "open": "closed", "early": "late", "strong": "weak", "rich": "poor", "happy": "sad",
    "light": "dark", "young": "old", "empty": "full", "fast": "slow", "true": "false",
    "north": "south",
}  # fmt: skip
FACTS = {
    "What colour is the sky on a clear day?": "blue",
    "What colour is fresh grass?": "green",
    "What colour is snow?": "white",
    "How many days are in a week?": "seven",
    "How many months are in a year?": "twelve",
    "How many legs does a spider have?": "eight",
    "How many minutes are in an hour?": "sixty",
    "Which planet do we live on?": "earth",
    "Which planet is known as the red planet?": "mars",
    "Which planet is the largest one?": "jupiter",
    "Which ocean is the largest one?": "pacific",
    "Who wrote Hamlet?": "shakespeare",
    "Who wrote Romeo and Juliet?": "shakespeare",
    "Who painted the Mona Lisa?": "leonardo",
    "Who was the first president of the United States?": "washington",
    "What is frozen water called?": "ice",
    "What is the young of a cat called?": "kitten",
    "What is the young of a dog called?": "puppy",
    "Which animal gives us wool?": "sheep",
    "Which insect makes honey?": "bee",
    "Which language is spoken in Brazil?": "portuguese",
    "Which metal is liquid at room temperature?": "mercury",
    "Which gas do we breathe in to live?": "oxygen",
    "Which star is the closest to the Earth?": "sun",
}
NUMBERS = {"seven": "7", "twelve": "12", "eight": "8", "sixty": "60"}


def questions() -> list[tuple[str, str]]:
    """Return questions with their right words; every third one is of another kind."""
    capitals = [(f"What is the capital of {x}?", y) for x, y in CAPITALS.items()]
    opposites = [(f"What is the opposite of {x}?", y) for x, y in OPPOSITES.items()]
    kinds = [capitals, opposites, list(FACTS.items())]
    return [kind[i] for i in range(max(map(len, kinds))) for kind in kinds if i < len(kind)]


def beginning(question: str) -> str:
    """Return the first words of the answer to a question for a capital or an opposite."""
    return f"{question.removesuffix('?').replace('What is t', 'T')} is"


def is_right(answer: str, word: str) -> bool:
    """Return True if an answer names the right word, or its number."""
    said = answer.casefold()
    return word.casefold() in said or NUMBERS.get(word, "\0") in said


def one_word(text: str) -> str:
    """Return an answer without marks around it, in small letters."""
    return text.strip(' ."').casefold()


def is_echo(answer: str, question: str) -> bool:
    """Return True if an answer is a part of its question: *Norway*, asked for Norway's capital."""
    said = one_word(answer)
    return bool(said) and said in question.casefold()
