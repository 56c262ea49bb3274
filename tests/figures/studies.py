"""Which figures the recordings of these tests have."""

OF_REQUESTS = ["effect", "throughput", "latency_ecdf", "time_breakdown"]
OF_A_DATABASE = [*OF_REQUESTS, "latency_cpu", "flush_cost"]
VIEWS = {
    "normal": OF_A_DATABASE,
    "single": OF_A_DATABASE,
    "eight": OF_A_DATABASE,
    "no_database": [*OF_REQUESTS, "latency_cpu"],
    "all_failed": [*OF_REQUESTS, "latency_cpu"],
    "empty": [*OF_REQUESTS, "latency_cpu"],
    "clients": [*OF_REQUESTS, "client_cost"],
    "copies": [*OF_REQUESTS, "known_effects"],
    "codecs": ["effect", "codec_cost"],
}
