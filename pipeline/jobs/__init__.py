"""The main job on disk: runs, stores, streams and how they are stopped."""
