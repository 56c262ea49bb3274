"""Analyses of crowds on the chat service, as its notebooks use them."""

from perflab.systems.chat.analysis.bursts import burst_model
from perflab.systems.chat.analysis.codec_costs import cost_table, implied_loops, loops_sentence
from perflab.systems.chat.analysis.users_held import held_sentences, targets_met, users_held

__all__ = [
    "burst_model",
    "cost_table",
    "held_sentences",
    "implied_loops",
    "loops_sentence",
    "targets_met",
    "users_held",
]
