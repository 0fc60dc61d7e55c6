"""The components of the course, one concept a module: the modules are the interface.

In the order of their lessons: start, windows, rnn, seq2seq, attention, self_attention, positions,
feed_forward, masks, multi_head, add_norm, encoder, decoder, key_value_cache, ssru, transformer,
efficient; and, for learners, `course_lib.exercises`.
"""

from pathlib import Path

__version__ = "0.2.0"

# notebooks handed out before version 0.2 import some modules from where they were
__path__.append(str(Path(__file__).parent / "files" / "moved"))
