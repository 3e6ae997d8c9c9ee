"""The command line: `app` has the commands, `commands` a file for each, `options` what they share.

This file imports nothing, because Ctrl-C is handled from the first import on.
"""
