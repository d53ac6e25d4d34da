"""What engines need to use the catalogs of a metalake: their settings, as data, and how they spell names."""
