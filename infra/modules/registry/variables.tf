variable "name" {
  description = "Name of the cluster, and of what belongs to it."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,40}$", var.name)) && !endswith(var.name, "-") && !strcontains(var.name, "--")
    error_message = "A name begins with a letter, and has small letters, digits and single hyphens, at most 41 in all."
  }
}

variable "given" {
  description = "A Postgres that exists already, in place of a new one. secret_arn: a secret of Secrets Manager with the JSON field `password`."
  type = object({
    host       = string
    port       = optional(number, 5432)
    database   = optional(string, "statestore")
    user       = optional(string, "statestore")
    secret_arn = string
  })
  default = null
}

variable "vpc_id" {
  description = "The VPC of a new Postgres."
  type        = string
  default     = null
  validation {
    condition     = var.given != null || var.vpc_id != null
    error_message = "A new Postgres needs vpc_id and subnet_ids; or give one that exists already."
  }
}

variable "subnet_ids" {
  description = "Subnets of a new Postgres, in two availability zones or more."
  type        = list(string)
  default     = []
  validation {
    condition     = var.given != null || length(var.subnet_ids) >= 2
    error_message = "A new Postgres needs two subnets or more."
  }
}

variable "client_security_group_ids" {
  description = "The security groups that may connect to a new Postgres: that of the job, and those of operators."
  type        = list(string)
  default     = []
}

variable "capacity" {
  description = "Aurora capacity units of a new Postgres. The registry is small and asks little."
  type        = object({ min = number, max = number })
  default     = { min = 0.5, max = 2 }
  validation {
    condition     = var.capacity.min >= 0.5 && var.capacity.min <= var.capacity.max
    error_message = "min is at least 0.5, and at most max: the job asks its lease every few seconds, so a pause never comes."
  }
}

variable "backup_days" {
  description = "Days for which AWS keeps backups of a new Postgres."
  type        = number
  default     = 7
}

variable "deletion_protection" {
  description = "Whether AWS refuses to delete a new Postgres. Without it, Terraform deletes the cluster without a last snapshot."
  type        = bool
  default     = true
}
