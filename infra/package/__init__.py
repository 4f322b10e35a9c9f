"""Makes the files of a deployment, in build/package: `make package`, or `python -m infra.package`.

    statestore-VERSION-py3-none-any.whl    the three packages of the project
    statestore-VERSION-py3.11.tar.gz       a virtual environment with the wheel and its dependencies, for Spark 3.5
    statestore-VERSION-py3.13.tar.gz       the same for Spark 4.0 and 4.1
    glue_job.py, emr_job.py                the scripts that the platforms start
    jars-spark-3.5.txt and others          the jars that Spark's Kafka source needs, each with its SHA-256, for 3.5, 4.0 and 4.1
    sbom.json                              all packages and jars, as CycloneDX
    SHA256SUMS                             the hashes of these files

The dependencies come from lock files with hashes, so two runs give the same bytes. No file names a path of the build machine.
"""
