"""Many independent pieces of work: on one core, on several, or on a Dask cluster."""

from regard.jobs._piece import Failure
from regard.jobs._progress import progress
from regard.jobs._run import Outcome, run_jobs

__all__ = ["Failure", "Outcome", "progress", "run_jobs"]
