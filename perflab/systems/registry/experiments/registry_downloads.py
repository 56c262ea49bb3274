"""Which step of the published ladder lets 100 downloads at one instant come through?"""

from __future__ import annotations

from collections.abc import Sequence

from perflab.experiments.experiment import Experiment
from perflab.recordings import Contrast, Remark
from perflab.systems.registry import claims, downloads
from perflab.systems.registry.downloads import DownloadParameters
from perflab.systems.registry.preset import differences
from perflab.systems.registry.rungs import chosen


def _contrasts(parameters: DownloadParameters) -> list[Contrast]:
    return claims.contrasts(chosen(parameters.sets), not differences(parameters))


def _warnings(parameters: DownloadParameters) -> Sequence[Remark]:
    return downloads.remarks(parameters, chosen(parameters.sets))


EXPERIMENT = Experiment(
    name="registry_downloads",
    title="Model registry: the ladder of downloads",
    question="Which step of the published ladder lets 100 downloads at one instant come through, "
    "and what limits each?",
    parameters=DownloadParameters,
    treatments=lambda parameters: downloads.LADDER.treatments(parameters, chosen(parameters.sets)),
    factors=lambda parameters: downloads.LADDER.factors(parameters, chosen(parameters.sets)),
    contrasts=_contrasts,
    warnings=_warnings,
)
