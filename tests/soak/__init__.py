"""A real broker under three real client libraries, while everything that can go wrong does; then the checker.

__main__.py        the command; soak.py: one soak from start to end broker.py          the product's broker on
files that a quota can fill (quota.py) processes.py       the processes that a soak starts, kills, stops and
ends faults.py          what goes wrong, and when proxy.py           between clients and broker: delays,
repeats and cuts requests; weather.py says which, how often client.py          one process of clients of one
library:
  application.py     transactions, instance after instance
  plain.py           an idempotent producer
  readers.py         consumers that assign, and members of a group
  consumer.py        a consumer whose reads and questions are recorded; dismissal.py: how clients are closed
record.py          histories that survive a kill -9 of their writer
ending.py          what is read when all is over: logs, offsets, plain tables
stage.py           what all processes know; parent.py: they end with their parent
"""
