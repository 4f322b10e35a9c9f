output "table" {
  description = "The name of the table."
  value       = module.state.name
}

output "policy_arns" {
  description = "The policies of the job, of an operator and of a reader."
  value       = module.access.policy_arns
}

output "start_job_run" {
  description = "The request that starts the job, for `aws emr-serverless start-job-run --cli-input-json`."
  value       = module.job.start_job_run
}
