"""Figures that only one kind of study has, and the fixture that is one."""

OF_ONE_STUDY = {"client_cost": "clients", "codec_cost": "codecs", "known_effects": "copies"}
