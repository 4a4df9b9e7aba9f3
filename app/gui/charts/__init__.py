"""Charts: each a widget that is given a snapshot and draws it, cheaply enough to do so ten times a second."""
