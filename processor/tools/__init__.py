"""What people do with a job and its state: inspect, check, repair, draft, look at pages, and the demos.

A tool imports the job and all below it. Only verbs (`processor.cli`) and other tools import it, so no job needs this wing.
"""
