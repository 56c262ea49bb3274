"""MetricStream: a server in C++ that takes metrics, and the life cycle of its connections."""
