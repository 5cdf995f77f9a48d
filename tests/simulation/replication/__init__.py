"""Worlds in which a leader ships its journals to followers, without the brokers around them."""
