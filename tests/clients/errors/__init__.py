"""Errors that a transactional client may see: what each library tells, and whether the page is right."""
