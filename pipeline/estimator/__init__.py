"""The face that scikit-learn knows; nothing else here imports it."""
