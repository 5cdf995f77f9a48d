"""What the long runs have found: a file for each finding, which `make check` tries again from then on.

`simulation-*.json` and `crash-states-*.json` say what to play; `fuzz/TARGET/*` are inputs. A file stays when
the fault is mended: a later change may bring it back.
"""
