"""Figures of the MetricStream system alone."""
