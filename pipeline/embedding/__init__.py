"""The public stages around the engine: embed, plan, extend."""
