"""From files to labelled frames: recordings, clocks, features, joins and labels."""
