variable "name" {
  description = "Begins the names of the alarms."
  type        = string
}

variable "job" {
  description = "The setting `job`: the metrics carry it as a dimension."
  type        = string
  default     = "statestore"
}

variable "namespace" {
  description = "The setting `cloudwatch_namespace` of the job."
  type        = string
  validation {
    condition     = can(regex("^[A-Za-z0-9_./#-]{1,255}$", var.namespace)) && !startswith(var.namespace, "AWS/")
    error_message = "A namespace has letters, digits and ._/#-, and does not begin with AWS/."
  }
}

variable "table" {
  description = "The name of the table: output `name` of the module `state`."
  type        = string
}

variable "platform" {
  description = "Where the job runs: glue or emr_serverless."
  type        = string
  validation {
    condition     = contains(["glue", "emr_serverless"], var.platform)
    error_message = "The platform is glue or emr_serverless."
  }
}

variable "platform_job" {
  description = "The name of the Glue job, or the id of the EMR Serverless application."
  type        = string
}

variable "topic_arn" {
  description = "The SNS topic that gets the alarms. Its policy allows cloudwatch.amazonaws.com and events.amazonaws.com to publish."
  type        = string
}

variable "limits" {
  description = "When an alarm begins. Seconds: for five minutes without a break. Counts: in five minutes."
  type = object({
    lag_seconds            = optional(number, 300)
    unpublished_seconds    = optional(number, 300)
    lease_age_seconds      = optional(number, 60)
    restarts               = optional(number, 5)
    failed_runs            = optional(number, 2)
    retention_used_percent = optional(number, 75)
    stalled_seconds        = optional(number, 600)
    dead_letter_percent    = optional(number, 2)
    released_incomplete    = optional(number, 0)
    throttles              = optional(number, 0)
  })
  default = {}
}
