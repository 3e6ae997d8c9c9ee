"""What to run: scenarios, what their paths allow, and the flow lists and delivery traces they may name."""
