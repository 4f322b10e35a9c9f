output "security_group_id" {
  description = "The security group of the driver and the executors."
  value       = aws_security_group.job.id
}

output "alarms_arn" {
  description = "The topic of the alarms."
  value       = aws_sns_topic.alarms.arn
}
