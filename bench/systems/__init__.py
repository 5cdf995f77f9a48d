"""What is measured, behind one interface."""
