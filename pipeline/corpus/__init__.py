"""Corpora: many recordings on a schedule, each with a result and an outcome of its own."""
