"""From a plan to trials: design, measurement, and the conductor process that runs them."""
