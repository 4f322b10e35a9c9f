variable "name" {
  description = "Begins the names of the policies and of the job's role."
  type        = string
  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,50}$", var.name))
    error_message = "A name has 1 to 50 letters, digits, '_' or '-'."
  }
}

variable "platform" {
  description = "Where the job runs: glue or emr_serverless."
  type        = string
  validation {
    condition     = contains(["glue", "emr_serverless"], var.platform)
    error_message = "The platform is glue or emr_serverless."
  }
}

variable "table_arn" {
  description = "The table of the state: output `arn` of the module `state`."
  type        = string
  validation {
    condition     = can(regex("^arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table/[^/]+$", var.table_arn))
    error_message = "Give the ARN of a table: arn:aws:dynamodb:REGION:ACCOUNT:table/NAME."
  }
}

variable "job_makes_table" {
  description = "Whether the first start of the job may create the table. Not with the module `state`, which creates it."
  type        = bool
  default     = false
}

variable "load_files" {
  description = "Where `load` writes the files that DynamoDB imports, as an ARN: arn:aws:s3:::BUCKET/PREFIX. It lets the job delete the table and make it by an import. null: the job may not load."
  type        = string
  default     = null
  validation {
    condition     = var.load_files == null ? true : can(regex("^arn:[a-z-]+:s3:::[^/]+/.+$", var.load_files))
    error_message = "Give bucket and prefix: arn:aws:s3:::BUCKET/PREFIX."
  }
}

variable "kafka" {
  description = "The MSK cluster whose clients use IAM. `job` is the setting `job`: the transactional ids begin with it. A topic may end in `*`. `dead_letter_topic` (statestore.rejects by default) is the setting of this name, `rejects_topic` its former name. null: the job proves to Kafka who it is in another way."
  type = object({
    cluster_arn       = string
    job               = optional(string, "statestore")
    source_topics     = list(string)
    product_topics    = list(string)
    dead_letter_topic = optional(string)
    rejects_topic     = optional(string)
  })
  default = null
  validation {
    condition     = var.kafka == null ? true : can(regex("^arn:[a-z-]+:kafka:[^:]+:[0-9]{12}:cluster/[^/]+/[^/]+$", var.kafka.cluster_arn))
    error_message = "Give the ARN of an MSK cluster: arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/UUID."
  }
}

variable "secret_arns" {
  description = "The secrets that each of the three may read: the passwords of the registry and of Kafka."
  type = object({
    job      = optional(list(string), [])
    operator = optional(list(string), [])
    reader   = optional(list(string), [])
  })
  default = {}
}

variable "glue_schema_registry" {
  description = "Whether the settings name the AWS Glue Schema Registry: kind = \"glue\" in [schema_registry]."
  type        = bool
  default     = false
}

variable "artifacts" {
  description = "Where `make package` and the settings lie: a bucket, and the beginning of their keys, which ends in `/`."
  type        = object({ bucket = string, prefix = string })
  validation {
    condition     = endswith(var.artifacts.prefix, "/") && !startswith(var.artifacts.prefix, "/")
    error_message = "The prefix ends in `/`, and does not begin with it."
  }
}

variable "checkpoint" {
  description = "Where the checkpoint of Spark lies: a bucket, and the beginning of its keys, which ends in `/`."
  type        = object({ bucket = string, prefix = string })
  validation {
    condition     = endswith(var.checkpoint.prefix, "/") && !startswith(var.checkpoint.prefix, "/")
    error_message = "The prefix ends in `/`, and does not begin with it."
  }
}

variable "kms_key_arns" {
  description = "The customer managed keys of the table, the buckets and the secrets."
  type        = list(string)
  default     = []
}

variable "platform_job_arn" {
  description = "The Glue job or the EMR Serverless application, which an operator may start and stop: output `arn` of its module."
  type        = string
}
