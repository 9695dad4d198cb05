"""Numbers about many recordings: what is sampled of them, how they lie in one map, and how they drift."""
