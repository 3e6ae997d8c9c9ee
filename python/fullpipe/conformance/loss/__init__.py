"""The cases of loss-based controllers: CUBIC, Reno, and their slow starts, by the RFCs."""
