"""A replica set of one with a standby, over an etcd of three members, while one thing after another fails.

__main__.py    the command, and its table; run.py: one run from start to end
brokers.py     the two processes that take turns
clients.py     who writes transactions and plain messages back to back, and who reads them
faults.py      what goes wrong, and what must hold meanwhile
figures.py     how long no answer came; verdict.py: whether what was acknowledged is there
"""
