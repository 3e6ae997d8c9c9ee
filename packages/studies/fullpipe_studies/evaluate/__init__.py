"""`fullpipe evaluate CONTROLLER`: a report by the criteria of RFC 9743 (BCP 133).

The RFC is no checklist and has no thresholds: the community weighs. So a report has no "pass". A row is
better than, as, or worse than the standards, or has a flag; every threshold is ours and says so.

`criteria` has the RFC's criteria, each with its scenes and measures; `scene` what a scene is and what a seed
varies; `measures` what is read from a run; `verdicts` the rules; `run` carries out; `report` writes.
"""
