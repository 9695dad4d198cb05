"""What a notebook starts from: recordings to try things on."""
