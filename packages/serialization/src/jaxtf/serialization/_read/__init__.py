"""The parts of an `Exported` from the tables of an artifact, each of which is checked before it is believed."""
