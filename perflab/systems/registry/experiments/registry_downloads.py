"""Which step of the published ladder lets 100 downloads at one instant come through?"""

from __future__ import annotations

from perflab.recordings import Contrast
from perflab.systems.registry import claims, downloads
from perflab.systems.registry.downloads import DownloadParameters
from perflab.systems.registry.rungs import differences
from perflab.trials.experiment import Experiment


def _contrasts(parameters: DownloadParameters) -> list[Contrast]:
    return claims.contrasts(downloads.rungs(parameters), not differences(parameters))


EXPERIMENT = Experiment(
    name="registry_downloads",
    title="Model registry: the ladder of downloads",
    question="Which step of the published ladder lets 100 downloads at one instant come through, "
    "and what limits each?",
    parameters=DownloadParameters,
    treatments=lambda parameters: downloads.LADDER.treatments(
        parameters, downloads.rungs(parameters)
    ),
    factors=lambda parameters: downloads.LADDER.factors(parameters, downloads.rungs(parameters)),
    contrasts=_contrasts,
    warnings=downloads.remarks_on,
)
