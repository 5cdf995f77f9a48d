"""How the tests are run: as jobs, each a list of test files that is run alone and repeated by its name."""
