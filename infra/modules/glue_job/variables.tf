variable "name" {
  description = "Name of the Glue job."
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

variable "glue_version" {
  description = "5.0 or 5.1 (Spark 3.5, Python 3.11), or 6.0 (Spark 4.1, Python 3.13)."
  type        = string
  default     = "5.0"
  validation {
    condition     = contains(["5.0", "5.1", "6.0"], var.glue_version)
    error_message = "The Glue version is 5.0, 5.1 or 6.0."
  }
}

variable "worker_type" {
  description = "The size of the driver and of each executor."
  type        = string
  default     = "G.1X"
}

variable "workers" {
  description = "The driver and its executors, counted together."
  type        = number
  default     = 2
  validation {
    condition     = var.workers >= 2
    error_message = "A job has a driver and one executor or more."
  }
}

variable "connections" {
  description = "Glue connections of type NETWORK into the VPC of the registry and of Kafka. Their names begin with the name that the module `access` got."
  type        = list(string)
}

variable "maintenance_window" {
  description = "When Glue may restart the job, at least every 7 days: day and hour in UTC, Sun:3."
  type        = string
  default     = "Sun:3"
  validation {
    condition     = can(regex("^(Mon|Tue|Wed|Thu|Fri|Sat|Sun):([01]?[0-9]|2[0-3])$", var.maintenance_window))
    error_message = "A window is a day and an hour in UTC: Sun:3."
  }
}

variable "retries" {
  description = "How often Glue starts a failed run again."
  type        = number
  default     = 10
}
