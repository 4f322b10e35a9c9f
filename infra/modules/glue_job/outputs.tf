output "name" {
  description = "The name of the Glue job: `aws glue start-job-run --job-name NAME`."
  value       = aws_glue_job.job.name
}

output "arn" {
  description = "The ARN of the Glue job."
  value       = aws_glue_job.job.arn
}
