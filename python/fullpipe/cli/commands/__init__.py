"""The commands of the command line, one file each; `fullpipe.cli.app` registers them."""
