variable "region" {
  description = "The AWS region."
  type        = string
  default     = "eu-west-1"
}

variable "name" {
  description = "Begins the names of all parts."
  type        = string
  default     = "statestore-production"
}

variable "release" {
  description = "The version of statestore, as `make package` prints it."
  type        = string
  default     = "0.1.0"
}

variable "release_label" {
  description = "The release of EMR: emr-7.11.0 or newer, or emr-spark-8.0.0 with the jars of Spark 4.0."
  type        = string
  default     = "emr-7.12.0"
}

variable "bucket" {
  description = "A bucket that exists: `make package` is uploaded to its prefix artifacts/, and the checkpoint goes to checkpoint/."
  type        = string
}

variable "jars" {
  description = "The S3 addresses of the jars that Spark needs: docs/deploy.md says which."
  type        = list(string)
}

variable "vpc_id" {
  description = "The VPC of Kafka and of the registry."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets of this VPC."
  type        = list(string)
}

variable "registry" {
  description = "The Postgres of the registry, which lets the security group `NAME-job` in. secret_arn: a secret with the JSON field `password`."
  type = object({
    host       = string
    port       = optional(number, 5432)
    database   = optional(string, "statestore")
    user       = optional(string, "statestore")
    secret_arn = string
  })
}

variable "kafka" {
  description = "The MSK cluster with IAM, and the topics that the job reads and writes."
  type = object({
    cluster_arn       = string
    bootstrap_servers = string
    security_group_id = string
    source_topics     = list(string)
    product_topics    = list(string)
  })
}

variable "alarm_email" {
  description = "The address that gets the alarms."
  type        = string
}

variable "deletion_protection" {
  description = "Whether AWS refuses to delete the table."
  type        = bool
  default     = true
}
