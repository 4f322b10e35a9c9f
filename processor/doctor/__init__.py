"""Checks a set-up before a job runs, or when it does not run: `statestore doctor`.

doctor_checks.py   all checks in their order; examine.py runs them
finding.py         a finding: its state, its text and its cure
surroundings.py    all questions to the world; the checks themselves decide only
"""
