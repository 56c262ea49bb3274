"""Analyses of crowds on the chat service, as its notebooks use them."""

from perflab.systems.chat.analysis.codec_costs import cost_table, implied_loops, loops_sentence
from perflab.systems.chat.analysis.deflate import deflate_of_sending
from perflab.systems.chat.analysis.relations import relations
from perflab.systems.chat.analysis.users_held import held_sentences, users_held

__all__ = [
    "cost_table",
    "deflate_of_sending",
    "held_sentences",
    "implied_loops",
    "loops_sentence",
    "relations",
    "users_held",
]
