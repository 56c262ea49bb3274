"""The figures of the recordings of these tests."""

WITHOUT_A_TRIAL = ["effect", "throughput", "latency_ecdf", "time_breakdown", "in_flight"]
OF_REQUESTS = [*WITHOUT_A_TRIAL[:-1], "core_time", "in_flight"]
OF_A_DATABASE = [*OF_REQUESTS, "database_waits", "latency_cpu", "flush_cost"]
VIEWS = {
    "normal": OF_A_DATABASE,
    "single": OF_A_DATABASE,
    "eight": OF_A_DATABASE,
    "no_database": [*OF_REQUESTS, "latency_cpu"],
    "all_failed": [*WITHOUT_A_TRIAL, "latency_cpu"],
    "empty": [*WITHOUT_A_TRIAL, "latency_cpu"],
    "clients": [*OF_REQUESTS, "client_cost"],
    "copies": [*OF_REQUESTS, "known_effects"],
    "codecs": ["effect", "codec_cost"],
}
