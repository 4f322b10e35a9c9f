#!/bin/sh
# Installs the job with PySpark and Spark's Kafka connector into the folder PREFIX: `infra/container/install.sh PREFIX`, from the
# root of a checkout, with Python 3.11 and Java 17. The container file runs it, and so does a host under systemd.
set -eu
prefix=$1
"${PYTHON:-python3.11}" -m venv "$prefix"
pip="$prefix/bin/python -m pip install --no-cache-dir --disable-pip-version-check --quiet"
$pip --require-hashes --only-binary :all: --requirement infra/package/lock-py3.11.txt
$pip --require-hashes --requirement infra/container/spark.txt
# From a copy: a build next to the sources would take in files of an earlier one.
source=$(mktemp -d)
cp -R pyproject.toml README.md LICENSE statestore registry processor "$source"
$pip --no-deps "$source"
rm -rf "$source"
# The connector goes into the cache that the job looks into: XDG_CACHE_HOME is PREFIX/cache where it runs. Without HOME no other
# cache serves.
env -u HOME XDG_CACHE_HOME="$prefix/cache" "$prefix/bin/python" -c \
  'from processor.environment.programs.downloads import spark_kafka_jars; print(spark_kafka_jars(print))' >"$prefix/connector"
sed -n 's/^[^#:]*:\([^:]*\):\([^ ]*\) \([0-9a-f]*\)$/\3  \1-\2.jar/p' infra/package/jars-spark-3.5.txt >"$prefix/jars.sha256"
(cd "$(tail -n 1 "$prefix/connector")" && sha256sum --check --strict --quiet "$prefix/jars.sha256")
chmod -R a+rX "$prefix" # the job runs as another user
"$prefix/bin/statestore" --version
