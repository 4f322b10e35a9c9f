# The table in each of its forms, and the policies of a job without Kafka's IAM.

provider "aws" {
  region = "eu-west-1"
}

resource "aws_kms_key" "key" {
  description = "The key of the table"
}

module "plain" {
  source              = "../modules/state"
  name                = "plain"
  slots               = 3
  deletion_protection = false
}

module "full" {
  source              = "../modules/state"
  name                = "full"
  on_demand_maximum   = { read = 4000, write = 1000 }
  kms_key_arn         = aws_kms_key.key.arn
  deletion_protection = false
}

module "provisioned" {
  source              = "../modules/state"
  name                = "provisioned"
  slots               = 2
  provisioned         = { read = { min = 5, max = 50 }, write = { min = 5, max = 20 } }
  deletion_protection = false
}

module "access" {
  source               = "../modules/access"
  name                 = "plain"
  platform             = "glue"
  glue_schema_registry = true
  table_arn            = module.plain.arn
  job_makes_table      = true
  load_files           = "arn:aws:s3:::bucket/loads"
  secret_arns          = { for who in ["job", "operator", "reader"] : who => ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:${who}"] }
  artifacts            = { bucket = "bucket", prefix = "artifacts/" }
  checkpoint           = { bucket = "bucket", prefix = "checkpoint/" }
  platform_job_arn     = "arn:aws:glue:eu-west-1:123456789012:job/plain"
}

output "policies" {
  value = module.access.policies
}
