output "application_id" {
  description = "The id of the application."
  value       = aws_emrserverless_application.job.id
}

output "arn" {
  description = "The ARN of the application."
  value       = aws_emrserverless_application.job.arn
}

output "start_job_run" {
  description = "The request that starts the job: `aws emr-serverless start-job-run --cli-input-json`. A run in mode STREAMING is tried again until it failed 5 times in an hour."
  value = jsonencode({
    applicationId    = aws_emrserverless_application.job.id
    executionRoleArn = var.role_arn
    name             = var.name
    mode             = "STREAMING"
    retryPolicy      = { maxFailedAttemptsPerHour = 5 }
    jobDriver = {
      sparkSubmit = {
        entryPoint            = "${local.files}emr_job.py"
        entryPointArguments   = ["--settings", "settings.toml"]
        sparkSubmitParameters = join(" ", [for name, value in local.confs : "--conf ${name}=${value}"])
      }
    }
    configurationOverrides = {
      monitoringConfiguration = {
        cloudWatchLoggingConfiguration = { enabled = true, logGroupName = aws_cloudwatch_log_group.job.name }
      }
    }
  })
}
