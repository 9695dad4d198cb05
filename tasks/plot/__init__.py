"""What pictures of long recordings show of one block: extremes, counts and samples."""
