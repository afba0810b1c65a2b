"""The method `l2`, the package's own: a bias projected at theta, with rho integrated (docs/l2.md)."""

from __future__ import annotations

from l2calib.methods.l2.projected_bias import PSI_PRIOR, ProjectedBias

__all__ = ["PSI_PRIOR", "ProjectedBias"]
