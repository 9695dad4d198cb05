"""Where a run computes, and whether that is fit for it."""
