"""The fold of data journals, and the local copy of committed drafts into the visible log."""
