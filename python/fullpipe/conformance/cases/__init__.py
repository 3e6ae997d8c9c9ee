"""The cases, a file for each or for a small group that shares a scenario. A file's cases are its `CASES`."""
