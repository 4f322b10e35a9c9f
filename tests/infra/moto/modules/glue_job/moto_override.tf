resource "aws_glue_job" "job" {
  lifecycle {
    ignore_changes = [execution_class, maintenance_window] # moto sets the first, and forgets the second
  }
}
