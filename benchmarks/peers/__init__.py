"""Other multi-agent environments beside Echelon, each in a virtual environment of its own."""
