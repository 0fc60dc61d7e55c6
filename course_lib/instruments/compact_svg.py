"""Pictures in a third of their bytes: what matplotlib draws, written anew with rounded numbers.

A figure is thousands of letters, each one `<use xlink:href="#..." transform="translate(...)"/>`
with eight decimals. Here a coordinate has a hundredth of a point, in a letter a thousandth of its
size, and a path goes from each point to the next. What is drawn twice is defined once, and named by
what it draws: the same picture has the same bytes, and two pictures in one page do not take each
other's letters.
"""

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, groupby
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
COMMAND = re.compile(r"([mlhvqcz])([^mlhvqcz]*)", re.IGNORECASE)
TAKES = {"m": 2, "l": 2, "h": 1, "v": 1, "q": 4, "c": 6}  # numbers
FUNCTION = re.compile(r"(\w+)\((.*?)\)")
REFERENCE = re.compile(r"(?:^|(?<=url\())#[\w-]+")
TWICE = re.compile(r"#(\w)\1(\w)\2(\w)\3$")  # a colour's digits
WHOLE = re.compile(r"(?<![\w-])opacity:")  # is of a group as a whole, not of each part
UNSEEN = re.compile(r"fill:none|(.*;)?opacity:0(;.*)?")
LETTER = "scale(0.015625)"  # makes a letter 100 high; here it is 1,000, without decimals


class Grid(NamedTuple):
    """Where coordinates lie: what they are multiplied by, and their decimals afterwards."""

    factor: float = 1
    decimals: int = 2

    def lay(self, number: str) -> int:
        """Return a number in units of the last decimal."""
        return round(float(number) * self.factor * 10**self.decimals)

    def write(self, units: int) -> str:
        """Return so many units as a number in few characters."""
        if not self.decimals:
            return str(units)
        text = f"{units / 10**self.decimals:.{self.decimals}f}".rstrip("0").rstrip(".")
        return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text

    def short(self, numbers: str) -> str:
        """Write the numbers in a text anew."""
        return NUMBER.sub(lambda x: self.write(self.lay(x[0])), numbers)


PAGE, STYLES, FACTORS = Grid(), Grid(decimals=3), Grid(decimals=6)


def compact(svg: str) -> str:
    """Return the same picture in fewer bytes. One that is compact stays as it is."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.text = element.tail = None
        element.attrib = {key.rpartition("}")[2]: text for key, text in element.attrib.items()}
    shapes = {f"#{x.get('id')}": x for defs in root.iter("defs") for x in defs if "id" in x.attrib}
    letters = {name for name, shape in shapes.items() if shape.get("transform") == LETTER}
    for name in letters:
        del shapes[name].attrib["transform"]
        _round(shapes[name], Grid(1000 / 6400, 0))
    for text in root.iter("g"):
        if any(part.get("href") in letters for part in text):
            _round(text, PAGE, Grid(0.1, 6))
            for part in text:
                _round(part, Grid(10, 0))
    for element in [*root.iter()][1:]:
        element.attrib.pop("id", None)
        _round(element, PAGE)
    root[:] = _shared([*_seen(root, shapes)], "clip-path", "style")
    _name(root, shapes)
    first = {"xmlns": "http://www.w3.org/2000/svg", "stroke-linejoin": "round"}
    root.attrib = first | {key: text for key, text in root.attrib.items() if key != "version"}
    return _written(root)


def _round(element: Element, grid: Grid, factors: Grid = FACTORS) -> None:
    """Lay the coordinates of an element on a grid, and write the rest of it shorter."""
    for key, value in [*element.attrib.items()]:
        match key:
            case "d":
                element.set(key, _path(value, grid))
            case "x" | "y" | "width" | "height":
                element.set(key, grid.short(value))
            case "style":
                element.set(key, _style(value))
            case "href":
                element.set(key, "".join(value.split()))
            case "transform":
                parts = [(name, NUMBER.findall(text)) for name, text in FUNCTION.findall(value)]
                if element.tag == "use" and [name for name, _ in parts] == ["translate"]:
                    del element.attrib[key]
                    element.attrib |= zip("xy", map(grid.short, parts[0][1]), strict=True)
                    continue
                grids = {"translate": grid, "scale": factors}
                written = [
                    f"{name}({_close(' '.join(map(grids.get(name, PAGE).short, numbers)))})"
                    for name, numbers in parts
                ]
                element.set(key, "".join(written))
    for key in ("x", "y"):
        if element.get(key) == "0":
            del element.attrib[key]


@lru_cache(1024)  # the letters are the same in all pictures
def _path(drawn: str, grid: Grid) -> str:
    """Write a path from each point to the next."""
    steps, here, start = list[tuple[str, list[int]]](), (0, 0), (0, 0)
    for command, text in COMMAND.findall(drawn):
        numbers, kind = [grid.lay(x) for x in NUMBER.findall(text)], command.lower()
        if kind == "z":
            if here == start and steps[-1][0] == "l":
                steps.pop()  # it draws this line itself
            steps.append(("z", []))
            here = start
            continue
        for first in range(0, len(numbers), TAKES[kind]):
            step = numbers[first : first + TAKES[kind]]
            if command.isupper():
                step = [x - here[i % 2] for i, x in enumerate(step)]
            elif kind in "hv":
                step = [*step, 0] if kind == "h" else [0, *step]
            steps.append(("l" if kind in "hv" else kind, step))
            here = here[0] + step[-2], here[1] + step[-1]
            if kind == "m":
                start, kind = here, "l"
    written, last = "", ""
    for kind, step in steps:
        if kind == "l" and 0 in step:
            kind, step = ("v", step[1:]) if step[1] else ("h", step[:1])
        written += (" " if kind == last else kind) + " ".join(map(grid.write, step))
        last = "l" if kind == "m" else kind
    return _close(written)


def _close(numbers: str) -> str:
    """Leave out the spaces that numbers need not have between them."""
    return re.sub(r"(\.\d+) (?=\.)", r"\1", numbers.replace(" -", "-"))


def _style(text: str) -> str:
    """Write the style of an element without spaces, and colours with three digits if possible."""
    written = []
    for pair in text.split(";"):
        key, value = map(str.strip, pair.split(":"))
        value = TWICE.sub(r"#\1\2\3", value) if "#" in value else STYLES.short(value)
        written.append(f"{key}:{value}")
    return ";".join(written)


def _seen(parent: Element, shapes: dict[str, Element]) -> Iterator[Element]:
    """Yield what can be seen of a group, without groups that do nothing."""
    for part in parent:
        style = part.get("style", "")
        if part.tag in ("defs", "metadata") or UNSEEN.fullmatch(style):
            continue
        if part.tag == "use":
            shape = shapes[part.get("href", "")]
            if not shape.get("d"):
                continue  # the space between words
            if style == shape.get("style"):
                del part.attrib["style"]
        if part.tag == "g":
            part[:] = _shared([*_seen(part, shapes)], "clip-path", "style")
            if not part.attrib or not len(part):
                yield from part
                continue
        yield part


def _shared(parts: list[Element], *keys: str) -> list[Element]:
    """Say once for neighbours what they have in common."""
    if not keys:
        return parts
    key, *rest = keys

    def value(part: Element) -> str | None:
        alone = "transform" in part.attrib or WHOLE.search(part.get("style", ""))
        return None if alone else part.get(key)

    grouped = []
    for common, neighbours in groupby(parts, value):
        run = [*neighbours]
        if common is None or len(run) == 1:
            grouped += run
            continue
        for part in run:
            del part.attrib[key]
        group = Element("g", {key: common})
        opened = chain.from_iterable(x if x.tag == "g" and not x.attrib else [x] for x in run)
        group[:] = _shared([*opened], *rest)
        grouped.append(group)
    return _shared(grouped, *rest)


def _name(root: Element, shapes: dict[str, Element]) -> None:
    """Define each shape that is used, once, under a name that is made of what it draws."""
    digests = {
        name: urlsafe_b64encode(hashlib.sha256(_written(shape).encode()).digest())[:5].decode()
        for name, shape in shapes.items()
    }
    defined = {}

    def defines(match: re.Match) -> str:
        name = digests[match[0]]
        defined.setdefault(name, shapes[match[0]])
        return f"#{name}"

    for element in root.iter():
        for key in element.attrib.keys() & {"href", "clip-path", "style"}:
            element.set(key, REFERENCE.sub(defines, element.attrib[key]))
    for name, shape in defined.items():
        shape.attrib = {"id": name} | shape.attrib
    defs = Element("defs")
    defs[:] = defined.values()
    root.insert(0, defs)


def _written(element: Element) -> str:
    """Return an element as text. Notebooks are JSON, which has two bytes for a double quote."""
    text = ElementTree.tostring(element, "unicode")
    return text.replace("'", "&#39;").replace('"', "'").replace(" />", "/>")
