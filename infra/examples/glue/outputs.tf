output "table" {
  description = "The name of the table."
  value       = module.state.name
}

output "policy_arns" {
  description = "The policies of the job, of an operator and of a reader."
  value       = module.access.policy_arns
}

output "start" {
  description = "The command that starts the job."
  value       = "aws glue start-job-run --job-name ${module.job.name}"
}
