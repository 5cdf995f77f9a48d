"""What foreign programs are made of, other than jars: packages of PyPI, npm and Debian, in the cache."""
