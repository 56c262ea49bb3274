"""The inference service of the lab: a specimen to be measured."""
