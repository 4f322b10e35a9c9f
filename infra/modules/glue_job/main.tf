# The job on Glue: a streaming job, which starts from the checkpoint after each stop.

locals {
  files  = "s3://${var.artifacts.bucket}/${var.artifacts.prefix}"
  python = var.glue_version == "6.0" ? "3.13" : "3.11"
}

resource "aws_s3_object" "settings" {
  bucket  = var.artifacts.bucket
  key     = "${var.artifacts.prefix}${var.name}/settings.toml"
  content = var.settings
}

resource "aws_glue_job" "job" {
  name               = var.name
  description        = "statestore ${var.release}: documents from change streams"
  role_arn           = var.role_arn
  glue_version       = var.glue_version
  worker_type        = var.worker_type
  number_of_workers  = var.workers
  connections        = var.connections
  max_retries        = var.retries
  maintenance_window = var.maintenance_window

  command {
    name            = "gluestreaming"
    python_version  = "3"
    script_location = "${local.files}glue_job.py"
  }

  execution_property {
    max_concurrent_runs = 1 # a second run would only wait for the lease of the first
  }

  default_arguments = {
    "--python-virtual-env" = "${local.files}statestore-${var.release}-py${local.python}.tar.gz"
    "--extra-jars"         = join(",", var.jars)
    "--extra-files"        = "s3://${aws_s3_object.settings.bucket}/${aws_s3_object.settings.key}"
    "--settings"           = "settings.toml"
  }
}
