output "name" {
  description = "The name of the table."
  value       = aws_dynamodb_table.state.name
}

output "arn" {
  description = "The ARN of the table."
  value       = aws_dynamodb_table.state.arn
}
