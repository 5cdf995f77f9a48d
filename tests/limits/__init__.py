"""A broker that runs out of something the machine has: space on its disk, descriptors."""
