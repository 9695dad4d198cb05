"""Places of recordings and results that are not on this machine's disks: object stores and web servers."""
