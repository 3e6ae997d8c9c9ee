"""What came out: runs, the measures over them, and the statistics of those. Nothing here draws or writes."""
