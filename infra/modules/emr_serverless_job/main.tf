# The job on EMR Serverless: an application, the job's settings and log group. A job run is no resource of Terraform: the output
# `start_job_run` has the request that starts it.

locals {
  files       = "s3://${var.artifacts.bucket}/${var.artifacts.prefix}"
  environment = "./environment/bin/python"
  python      = startswith(var.release_label, "emr-spark-8") ? "3.13" : "3.11"
  # Spark takes a tenth more memory than a heap has, and Python's workers need their part of it.
  heap = floor(var.size.memory * 0.6 * 1024)
  over = var.size.memory * 1024 - local.heap

  confs = {
    "spark.archives"                                       = "${local.files}statestore-${var.release}-py${local.python}.tar.gz#environment"
    "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON" = local.environment
    "spark.emr-serverless.driverEnv.PYSPARK_PYTHON"        = local.environment
    "spark.executorEnv.PYSPARK_PYTHON"                     = local.environment
    "spark.files"                                          = "s3://${aws_s3_object.settings.bucket}/${aws_s3_object.settings.key}"
    "spark.jars"                                           = join(",", var.jars)
    "spark.driver.cores"                                   = var.size.cpu
    "spark.driver.memory"                                  = "${local.heap}m"
    "spark.driver.memoryOverhead"                          = "${local.over}m"
    "spark.executor.cores"                                 = var.size.cpu
    "spark.executor.memory"                                = "${local.heap}m"
    "spark.executor.memoryOverhead"                        = "${local.over}m"
    "spark.executor.instances"                             = var.executors
    "spark.dynamicAllocation.enabled"                      = false
  }
}

resource "aws_s3_object" "settings" {
  bucket  = var.artifacts.bucket
  key     = "${var.artifacts.prefix}${var.name}/settings.toml"
  content = var.settings
}

resource "aws_cloudwatch_log_group" "job" {
  name              = "/aws/emr-serverless/${var.name}"
  retention_in_days = var.log_days
}

resource "aws_emrserverless_application" "job" {
  name          = var.name
  release_label = var.release_label
  type          = "SPARK"

  network_configuration {
    subnet_ids         = var.subnet_ids
    security_group_ids = var.security_group_ids
  }

  # One driver and its executors: a second run cannot start next to the first.
  maximum_capacity {
    cpu    = "${var.size.cpu * (var.executors + 1)} vCPU"
    memory = "${var.size.memory * (var.executors + 1)} GB"
  }
}
