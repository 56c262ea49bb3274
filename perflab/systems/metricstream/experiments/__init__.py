"""The experiments of the MetricStream study."""
