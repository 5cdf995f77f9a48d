"""One file for each measure: it takes systems and amounts, and returns rows of the result file."""
