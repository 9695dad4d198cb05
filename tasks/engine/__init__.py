"""Local covariances, distances, kernel tiles and eigenpairs of one block."""
