# Three policies, each with the actions that its work needs: of the job, of an operator, and of a reader. And the job's role.
#
# dynamodb_actions.json has the requests that the code sends; the tests record these and compare both.

locals {
  roles = ["job", "operator", "reader"]

  arn       = split(":", var.table_arn)
  partition = local.arn[1]
  region    = local.arn[3]
  account   = local.arn[4]
  prefix    = { for service in ["logs", "glue"] : service => "arn:${local.partition}:${service}:${local.region}:${local.account}" }
}

# DynamoDB: the table, its indexes, and single partitions of the table.
locals {
  actions = jsondecode(file("${path.module}/dynamodb_actions.json"))
  parts   = { for role in local.roles : role => concat([role], role == "job" && var.job_makes_table ? ["table_maker"] : []) }

  dynamodb = {
    for role, parts in local.parts : role => concat(
      [{
        Effect   = "Allow"
        Action   = [for action in flatten([for part in parts : local.actions[part].table]) : "dynamodb:${action}"]
        Resource = [var.table_arn]
      }],
      [{
        Effect   = "Allow"
        Action   = [for action in local.actions[role].index : "dynamodb:${action}"]
        Resource = ["${var.table_arn}/index/*"]
      }],
      [for partition, actions in local.actions[role].partitions : {
        Effect    = "Allow"
        Action    = [for action in actions : "dynamodb:${action}"]
        Resource  = [var.table_arn]
        Condition = { "ForAllValues:StringEquals" = { "dynamodb:LeadingKeys" = [partition] } }
      }],
    )
  }
}

# Kafka: only where its clients use IAM.
locals {
  kafka        = var.kafka[*]
  dead_letters = [for kafka in local.kafka : coalesce(kafka.dead_letter_topic, kafka.rejects_topic, "statestore.rejects")]
  writes       = [for n, kafka in local.kafka : concat(kafka.product_topics, [local.dead_letters[n]])]

  kafka_rights = {
    job = flatten([for n, kafka in local.kafka : [
      { kind = "cluster", names = [], actions = ["Connect", "WriteDataIdempotently"] },
      { kind = "topic", names = kafka.source_topics, actions = ["DescribeTopic", "ReadData"] },
      { kind = "topic", names = local.writes[n], actions = ["CreateTopic", "DescribeTopic", "ReadData", "WriteData"] },
      { kind = "topic", names = [local.dead_letters[n]], actions = ["DescribeTopicDynamicConfiguration"] },
      { kind = "group", names = ["statestore-reader"], actions = ["AlterGroup", "DescribeGroup"] },
      { kind = "transactional-id", names = ["${kafka.job}-*"], actions = ["AlterTransactionalId", "DescribeTransactionalId"] },
    ]])
    operator = flatten([for n, kafka in local.kafka : [
      { kind = "cluster", names = [], actions = ["Connect"] },
      { kind = "topic", names = kafka.source_topics, actions = ["DescribeTopic"] },
      { kind = "topic", names = local.writes[n], actions = ["DescribeTopic", "ReadData"] },
      { kind = "group", names = ["statestore-reader"], actions = ["AlterGroup", "DescribeGroup"] },
    ]])
    reader = flatten([for n, kafka in local.kafka : [
      { kind = "cluster", names = [], actions = ["Connect"] },
      { kind = "topic", names = local.writes[n], actions = ["DescribeTopic", "ReadData"] },
      { kind = "group", names = ["statestore-reader"], actions = ["AlterGroup", "DescribeGroup"] },
    ]])
  }

  kafka_statements = {
    for role, rights in local.kafka_rights : role => [for right in rights : {
      Effect = "Allow"
      Action = [for action in right.actions : "kafka-cluster:${action}"]
      Resource = right.kind == "cluster" ? [var.kafka.cluster_arn] : [
        for name in right.names : "${replace(var.kafka.cluster_arn, ":cluster/", ":${right.kind}/")}/${name}"
      ]
    }]
  }
}

# Secrets and keys.
locals {
  secret_statements = {
    for role in local.roles : role => concat(
      [for arns in [var.secret_arns[role]] : { Effect = "Allow", Action = ["secretsmanager:GetSecretValue"], Resource = arns } if length(arns) > 0],
      [for arns in [var.kms_key_arns] : {
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
        Resource = arns
      } if length(arns) > 0],
    )
  }
}

# The AWS Glue Schema Registry: the request names a version of a schema by its UUID, and no registry.
locals {
  schema_statements = {
    for role in local.roles : role => [
      for given in [var.glue_schema_registry] : { Effect = "Allow", Action = ["glue:GetSchemaVersion"], Resource = ["*"] } if given && role != "reader"
    ]
  }
}

# A load: the import of DynamoDB reads the files with the rights of its caller, and writes a log.
locals {
  load_statements = flatten([for files in var.load_files[*] : [
    jsonencode({
      Effect   = "Allow"
      Action   = [for action in local.actions.loader.table : "dynamodb:${action}"]
      Resource = [var.table_arn, "${var.table_arn}/import/*"]
    }),
    jsonencode({ Effect = "Allow", Action = ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"], Resource = ["${files}/*"] }),
    jsonencode({ Effect = "Allow", Action = ["s3:ListBucket"], Resource = [split("/", files)[0]] }),
    jsonencode({
      Effect   = "Allow"
      Action   = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogGroups", "logs:DescribeLogStreams", "logs:PutLogEvents", "logs:PutRetentionPolicy"]
      Resource = ["${local.prefix.logs}:log-group:/aws-dynamodb/*"]
    }),
  ]])
}

# Each statement is JSON text: those of one list may have different fields.
locals {
  statements = {
    for role in local.roles : role => concat(
      [for one in local.dynamodb[role] : jsonencode(one)],
      [for one in local.kafka_statements[role] : jsonencode(one)],
      [for one in local.secret_statements[role] : jsonencode(one)],
      [for one in local.schema_statements[role] : jsonencode(one)],
      local.platform_statements[role],
      role == "job" ? local.load_statements : [],
    )
  }
}

resource "aws_iam_policy" "role" {
  for_each = toset(local.roles)

  name        = "${var.name}-${each.value}"
  description = "statestore: exactly what a ${each.value} needs"
  policy      = "{\"Version\":\"2012-10-17\",\"Statement\":[${join(",", local.statements[each.value])}]}"
}

resource "aws_iam_role" "job" {
  name        = "${var.name}-job"
  description = "The role by which the job of statestore runs"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = ["sts:AssumeRole"]
      Principal = { Service = [local.service] }
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
}

resource "aws_iam_role_policy_attachment" "job" {
  role       = aws_iam_role.job.name
  policy_arn = aws_iam_policy.role["job"].arn
}
