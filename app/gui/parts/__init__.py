"""The pieces that the window is made of, drawn from a `Look`."""
