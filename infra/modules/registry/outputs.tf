output "url" {
  description = "The address of the registry for the setting `registry`, without its password. The connection has TLS."
  value = format(
    "postgresql://%s@%s:%d/%s?sslmode=require",
    var.given == null ? local.user : var.given.user,
    var.given == null ? aws_rds_cluster.registry[0].endpoint : var.given.host,
    var.given == null ? local.port : var.given.port,
    var.given == null ? local.database : var.given.database,
  )
}

output "secret_arn" {
  description = "The secret with the JSON field `password`, for the module `access` and for the job's settings."
  value       = var.given == null ? aws_rds_cluster.registry[0].master_user_secret[0].secret_arn : var.given.secret_arn
}
