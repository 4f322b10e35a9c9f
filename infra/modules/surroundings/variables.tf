variable "name" {
  description = "The beginning of the names that this module makes."
  type        = string
}

variable "vpc_id" {
  description = "The VPC of the registry and of Kafka."
  type        = string
}

variable "kafka_security_group_id" {
  description = "The security group of the brokers, which lets the job in on port 9098."
  type        = string
}

variable "alarm_email" {
  description = "Who gets the alarms; this person confirms the subscription once."
  type        = string
}
