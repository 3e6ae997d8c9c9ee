"""`python -m fullpipe` is the command `fullpipe`."""

from fullpipe.cli import main

if __name__ == "__main__":
    main()
