variable "name" {
  description = "Name of the EMR Serverless application. The module `access` gets the same name: the job's log group has it."
  type        = string
  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,50}$", var.name))
    error_message = "A name has 1 to 50 letters, digits, '_' or '-'."
  }
}

variable "role_arn" {
  description = "The job's role: output `job_role_arn` of the module `access`."
  type        = string
}

variable "artifacts" {
  description = "Where the files of `make package` lie: a bucket, and the beginning of their keys, which ends in `/`. The settings go there too."
  type        = object({ bucket = string, prefix = string })
  validation {
    condition     = endswith(var.artifacts.prefix, "/") && !startswith(var.artifacts.prefix, "/")
    error_message = "The prefix ends in `/`, and does not begin with it."
  }
}

variable "release" {
  description = "The version of statestore, as in the names of its files: 0.1.0."
  type        = string
}

variable "settings" {
  description = "The text of the settings file (TOML). It holds no secret, only references."
  type        = string
}

variable "jars" {
  description = "The S3 addresses of the jars of Spark's Kafka connector, and of MSK's IAM where the job uses it."
  type        = list(string)
  validation {
    condition     = length(var.jars) > 0 && alltrue([for jar in var.jars : startswith(jar, "s3://")])
    error_message = "Give each jar as s3://BUCKET/KEY."
  }
}

variable "release_label" {
  description = "The release of EMR: emr-7.11.0 or newer (Spark 3.5, Python 3.11), or emr-spark-8.0.0 (Spark 4.0, Python 3.13)."
  type        = string
  default     = "emr-7.12.0"
  validation {
    condition     = can(regex("^(emr-7[.](1[1-9]|[2-9][0-9])[.][0-9]+|emr-spark-8[.]0[.][0-9]+)$", var.release_label))
    error_message = "A release is emr-7.11.0 or newer, or emr-spark-8.0.0: the tests run on their Spark, 3.5 and 4.0."
  }
}

variable "subnet_ids" {
  description = "Private subnets from which the registry and Kafka can be reached."
  type        = list(string)
}

variable "security_group_ids" {
  description = "Security groups of the driver and the executors."
  type        = list(string)
}

variable "executors" {
  description = "The number of executors; each has the size of the driver."
  type        = number
  default     = 1
  validation {
    condition     = var.executors >= 1
    error_message = "A job has one executor or more."
  }
}

variable "size" {
  description = "CPUs and GB of memory of the driver and of each executor."
  type        = object({ cpu = number, memory = number })
  default     = { cpu = 2, memory = 4 }
}

variable "log_days" {
  description = "Days for which CloudWatch keeps the log."
  type        = number
  default     = 30
}
