resource "aws_rds_cluster" "registry" {
  lifecycle {
    ignore_changes = [engine_version, scaling_configuration] # moto invents the second, of Serverless v1
  }
}

resource "aws_vpc_security_group_ingress_rule" "clients" {
  lifecycle {
    ignore_changes = [description] # moto forgets it where the rule names a group
  }
}
