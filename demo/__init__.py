"""The main job on real input, with crashes on the way, and every claim checked; no part of the package."""
