"""From responses to posteriors: one dataset in stages, many in chunks."""
