"""Programs of Java that tests run: compiled without a JDK, and run in processes of their own."""
