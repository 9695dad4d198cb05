"""What is in a file, before anything is computed: its clock, what opening it would ask, and what to do next."""
