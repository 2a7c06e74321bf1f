"""Where packs are performed, by name."""

EXECUTORS = {
    "here": "unweave.studies.executors.here:Here",
    "local": "unweave.studies.executors.local:Local",
    "ray": "unweave.studies.executors.on_ray:OnRay",
    "slurm": "unweave.studies.executors.on_slurm:OnSlurm",
}
"""By import path, so that a cluster's library is imported by those who use it only."""
