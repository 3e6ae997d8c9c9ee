"""The lab: the page that simulates in the browser, and the web server that hands it out.

`make lab` builds the page into the folder `site`. Any web server can hand it out; nothing is computed here.
"""
