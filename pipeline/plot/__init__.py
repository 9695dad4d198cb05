"""Pictures of results, and what they are made of."""
