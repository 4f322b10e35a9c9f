variable "name" {
  description = "Name of the table: the setting `table` of the job."
  type        = string
  validation {
    condition     = can(regex("^[A-Za-z0-9_.-]{3,255}$", var.name))
    error_message = "A table's name has 3 to 255 letters, digits, '_', '-' or '.'."
  }
}

variable "slots" {
  description = "Number of indexes GSI_1 to GSI_n that a new table gets. An empty index costs nothing. Later `statestore add-slots` adds more, and Terraform leaves them."
  type        = number
  default     = 20
  validation {
    condition     = var.slots >= 1 && var.slots <= 20 && floor(var.slots) == var.slots
    error_message = "A table has 1 to 20 slots."
  }
}

variable "on_demand_maximum" {
  description = "The most units per second that the table, and each of its indexes, serves on demand. null: no maximum. A maximum below the real load throttles the job."
  type        = object({ read = number, write = number })
  default     = null
}

variable "provisioned" {
  description = "Provisioned capacity with autoscaling, of the table and of each of its indexes, in place of billing on demand. Choose it before the table exists: later Terraform does not change the capacity."
  type = object({
    read           = object({ min = number, max = number })
    write          = object({ min = number, max = number })
    target_percent = optional(number, 70)
  })
  default = null
  validation {
    condition = var.provisioned == null ? true : alltrue([
      for range in [var.provisioned.read, var.provisioned.write] : range.min >= 1 && range.min <= range.max
    ])
    error_message = "min is at least 1, and at most max."
  }
  validation {
    condition     = var.provisioned == null || var.on_demand_maximum == null
    error_message = "on_demand_maximum has no effect on a provisioned table: give one of the two."
  }
}

variable "point_in_time_recovery" {
  description = "Whether the table can be restored to any second of the last 35 days."
  type        = bool
  default     = true
}

variable "deletion_protection" {
  description = "Whether AWS refuses to delete the table."
  type        = bool
  default     = true
}

variable "kms_key_arn" {
  description = "The customer managed key that encrypts the table. null: a key that AWS owns."
  type        = string
  default     = null
}
