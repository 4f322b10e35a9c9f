resource "aws_emrserverless_application" "job" {
  lifecycle {
    ignore_changes = [architecture] # moto forgets it
  }
}
