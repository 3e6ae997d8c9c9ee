"""The machine around a command: files and disks, output streams, limits, and what a file contains."""
