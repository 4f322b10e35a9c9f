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
  security_group_ids = [module.surroundings.security_group_id]
}

module "alarms" {
  source       = "../../modules/alarms"
  name         = var.name
  job          = var.name
  namespace    = local.namespace
  table        = module.state.name
  platform     = "emr_serverless"
  platform_job = module.job.application_id
  topic_arn    = module.surroundings.alarms_arn
}

module "surroundings" {
  source                  = "../../modules/surroundings"
  name                    = var.name
  vpc_id                  = var.vpc_id
  kafka_security_group_id = var.kafka.security_group_id
  alarm_email             = var.alarm_email
}
