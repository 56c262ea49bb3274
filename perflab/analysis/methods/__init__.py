"""The methods: effects of paired blocks, ranks, intervals, percentiles, the jackknife."""
