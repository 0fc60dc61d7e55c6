"""The components of the course, one concept a module: the modules are the interface.

In the order of their lessons: start, windows, rnn, seq2seq, attention, self_attention, positions,
feed_forward, masks, multi_head, add_norm, encoder, decoder, transformer, pooling, grouped_query,
swiglu, ssru, key_value_cache, byte_pair, corpus, ngrams, muon, squared_relu, hashed_ngrams,
language_model, sampling, corrected_counts, schedules, label_smoothing, batching, beam_search, bleu,
chrf, scaling, mixture, pretraining, efficient, vision, state_space, delta_rule, speculative. The
folders beside them are the tools: data, instruments, pretrained, answers, checking, grading,
verify, files, command_line; and, for learners, exercises and xray.
"""

__version__ = "0.2.0"
