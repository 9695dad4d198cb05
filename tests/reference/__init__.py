"""The slow, obvious reference: loops over NumPy arrays that can be read beside the paper.

It shares no code with the project, so that an agreement between the two means something.
"""
