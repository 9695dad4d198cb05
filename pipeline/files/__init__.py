"""Users' files, looked at before they are opened."""
