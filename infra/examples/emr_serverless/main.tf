# A job on EMR Serverless with all that it needs, but the VPC, Kafka, a Postgres and the bucket, which exist already.

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.80, < 6.0"
    }
  }
}

provider "aws" {
  region = var.region
}

locals {
  namespace = "statestore"
  artifacts = { bucket = var.bucket, prefix = "artifacts/" }
  settings = templatefile("${path.module}/../settings.toml.tftpl", {
    name              = var.name
    region            = var.region
    namespace         = local.namespace
    registry_url      = module.registry.url
    registry_secret   = module.registry.secret_arn
    bootstrap_servers = var.kafka.bootstrap_servers
    checkpoint        = "s3://${var.bucket}/checkpoint/${var.name}/"
  })
}

module "state" {
  source              = "../../modules/state"
  name                = var.name
  deletion_protection = var.deletion_protection
}

module "registry" {
  source = "../../modules/registry"
  name   = var.name
  given  = var.registry
}

module "access" {
  source           = "../../modules/access"
  name             = var.name
  platform         = "emr_serverless"
  table_arn        = module.state.arn
  artifacts        = local.artifacts
  checkpoint       = { bucket = var.bucket, prefix = "checkpoint/${var.name}/" }
  platform_job_arn = module.job.arn
  kafka            = merge(var.kafka, { job = var.name })
  # A user of Postgres for each of the three is safer: `statestore roles` makes their roles.
  secret_arns = { job = [module.registry.secret_arn], operator = [module.registry.secret_arn], reader = [module.registry.secret_arn] }
}

module "job" {
  source             = "../../modules/emr_serverless_job"
  name               = var.name
  role_arn           = module.access.job_role_arn
  artifacts          = local.artifacts
  release            = var.release
  settings           = local.settings
  release_label      = var.release_label
  jars               = var.jars
  subnet_ids         = var.subnet_ids
  security_group_ids = [aws_security_group.job.id]
}

module "alarms" {
  source       = "../../modules/alarms"
  name         = var.name
  job          = var.name
  namespace    = local.namespace
  table        = module.state.name
  platform     = "emr_serverless"
  platform_job = module.job.application_id
  topic_arn    = aws_sns_topic.alarms.arn
}

resource "aws_security_group" "job" {
  name        = "${var.name}-job"
  description = "The driver and the executors of statestore"
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "each_other" {
  security_group_id            = aws_security_group.job.id
  description                  = "Driver and executors reach each other"
  referenced_security_group_id = aws_security_group.job.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "all" {
  security_group_id = aws_security_group.job.id
  description       = "AWS, the registry and Kafka"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

resource "aws_vpc_security_group_ingress_rule" "kafka" {
  security_group_id            = var.kafka.security_group_id
  description                  = "statestore reads and writes topics by IAM"
  referenced_security_group_id = aws_security_group.job.id
  ip_protocol                  = "tcp"
  from_port                    = 9098
  to_port                      = 9098
}

resource "aws_sns_topic" "alarms" {
  name = "${var.name}-alarms"
}

resource "aws_sns_topic_policy" "alarms" {
  arn = aws_sns_topic.alarms.arn
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = ["sns:Publish"]
      Principal = { Service = ["cloudwatch.amazonaws.com", "events.amazonaws.com"] }
      Resource  = [aws_sns_topic.alarms.arn]
    }]
  })
}

resource "aws_sns_topic_subscription" "alarms" {
  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = var.alarm_email
}
