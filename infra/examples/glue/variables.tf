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

variable "bucket" {
  description = "A bucket that exists: `make package` is uploaded to its prefix artifacts/, and the checkpoint goes to checkpoint/."
  type        = string
}

variable "jars" {
  description = "The S3 addresses of the jars that Spark needs: docs/deploy.md says which."
  type        = list(string)
}

variable "vpc_id" {
  description = "The VPC of Kafka. The registry goes there too."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets of this VPC, in two availability zones or more."
  type        = list(string)
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
  description = "Whether AWS refuses to delete the table and the registry."
  type        = bool
  default     = true
}
