# A job on Glue with all that it needs, but the VPC, Kafka and the bucket, which exist already.

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
  source                    = "../../modules/registry"
  name                      = var.name
  vpc_id                    = var.vpc_id
  subnet_ids                = var.subnet_ids
  client_security_group_ids = [module.surroundings.security_group_id]
  deletion_protection       = var.deletion_protection
}

module "access" {
  source           = "../../modules/access"
  name             = var.name
  platform         = "glue"
  table_arn        = module.state.arn
  artifacts        = local.artifacts
  checkpoint       = { bucket = var.bucket, prefix = "checkpoint/${var.name}/" }
  platform_job_arn = module.job.arn
  kafka            = merge(var.kafka, { job = var.name })
  # A user of Postgres for each of the three is safer: `statestore roles` makes their roles.
  secret_arns = { job = [module.registry.secret_arn], operator = [module.registry.secret_arn], reader = [module.registry.secret_arn] }
}

module "job" {
  source      = "../../modules/glue_job"
  name        = var.name
  role_arn    = module.access.job_role_arn
  artifacts   = local.artifacts
  release     = var.release
  settings    = local.settings
  jars        = var.jars
  connections = [for connection in aws_glue_connection.network : connection.name]
}

data "aws_subnet" "job" {
  for_each = toset(var.subnet_ids)
  id       = each.value
}

resource "aws_glue_connection" "network" {
  for_each = data.aws_subnet.job

  name            = "${var.name}-${each.key}"
  description     = "The way into the VPC of the registry and of Kafka"
  connection_type = "NETWORK"

  physical_connection_requirements {
    availability_zone      = each.value.availability_zone
    security_group_id_list = [module.surroundings.security_group_id]
    subnet_id              = each.key
  }
}

module "alarms" {
  source       = "../../modules/alarms"
  name         = var.name
  job          = var.name
  namespace    = local.namespace
  table        = module.state.name
  platform     = "glue"
  platform_job = module.job.name
  topic_arn    = module.surroundings.alarms_arn
}

module "surroundings" {
  source                  = "../../modules/surroundings"
  name                    = var.name
  vpc_id                  = var.vpc_id
  kafka_security_group_id = var.kafka.security_group_id
  alarm_email             = var.alarm_email
}
