"""The chat service of the lab: a specimen to be measured."""
