"""What the observer is compared with, and how."""
