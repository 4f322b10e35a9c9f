provider "aws" {
  s3_use_path_style = true # moto's buckets are no hosts
}

resource "aws_vpc_security_group_ingress_rule" "each_other" {
  lifecycle {
    ignore_changes = [description] # moto forgets it where the rule names a group
  }
}

resource "aws_vpc_security_group_ingress_rule" "kafka" {
  lifecycle {
    ignore_changes = [description]
  }
}
