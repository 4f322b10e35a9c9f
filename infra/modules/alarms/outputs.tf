output "alarm_names" {
  description = "The names of the alarms."
  value       = [for alarm in concat(values(aws_cloudwatch_metric_alarm.gauge), values(aws_cloudwatch_metric_alarm.counter), values(aws_cloudwatch_metric_alarm.table)) : alarm.alarm_name]
}
