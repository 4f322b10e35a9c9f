# The registry: Aurora Serverless v2 with Postgres, or a Postgres that exists already.

locals {
  new      = var.given == null ? 1 : 0
  port     = 5432
  database = "statestore"
  user     = "statestore"
}

resource "aws_db_subnet_group" "registry" {
  count      = local.new
  name       = var.name
  subnet_ids = var.subnet_ids
}

resource "aws_security_group" "registry" {
  count       = local.new
  name        = "${var.name}-registry"
  description = "The registry of statestore: Postgres, from its clients only."
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "clients" {
  for_each = var.given == null ? { for n, id in var.client_security_group_ids : n => id } : {}

  security_group_id            = aws_security_group.registry[0].id
  description                  = "A client of the registry"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = local.port
  to_port                      = local.port
}

resource "aws_rds_cluster_parameter_group" "registry" {
  count  = local.new
  name   = var.name
  family = "aurora-postgresql16"

  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }
}

resource "aws_rds_cluster" "registry" {
  count                           = local.new
  cluster_identifier              = var.name
  engine                          = "aurora-postgresql"
  engine_version                  = "16.6"
  database_name                   = local.database
  master_username                 = local.user
  manage_master_user_password     = true
  port                            = local.port
  storage_encrypted               = true
  db_subnet_group_name            = aws_db_subnet_group.registry[0].name
  db_cluster_parameter_group_name = aws_rds_cluster_parameter_group.registry[0].name
  vpc_security_group_ids          = [aws_security_group.registry[0].id]
  backup_retention_period         = var.backup_days
  deletion_protection             = var.deletion_protection
  skip_final_snapshot             = !var.deletion_protection
  final_snapshot_identifier       = var.deletion_protection ? "${var.name}-last" : null

  serverlessv2_scaling_configuration {
    min_capacity = var.capacity.min
    max_capacity = var.capacity.max
  }

  lifecycle {
    ignore_changes = [engine_version] # AWS applies minor versions itself
  }
}

resource "aws_rds_cluster_instance" "registry" {
  count              = local.new
  identifier         = "${var.name}-1"
  cluster_identifier = aws_rds_cluster.registry[0].id
  engine             = aws_rds_cluster.registry[0].engine
  instance_class     = "db.serverless"
}
