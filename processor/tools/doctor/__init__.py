"""Checks a set-up before a job runs, or when it does not run: `statestore doctor`.

checks.py         all checks in their order, and what runs them
context.py        all questions to the world; the checks themselves decide only
the other files   each the checks of one subject, declared above their functions
"""
