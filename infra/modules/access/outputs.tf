output "job_role_arn" {
  description = "The role of the job, for the module of the platform."
  value       = aws_iam_role.job.arn
}

output "policy_arns" {
  description = "The policies of the job, of an operator and of a reader, by these names. Attach the last two to people."
  value       = { for role, policy in aws_iam_policy.role : role => policy.arn }
}

output "policies" {
  description = "The same policies as JSON."
  value       = { for role, policy in aws_iam_policy.role : role => policy.policy }
}
