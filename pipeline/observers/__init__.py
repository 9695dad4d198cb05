"""What follows the hidden state, given an embedding: observers, filters, smoother, reconstruction."""
