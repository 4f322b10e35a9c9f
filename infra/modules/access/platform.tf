# What the platform itself does by the job's role, and what an operator does to the job. A reader needs neither.

locals {
  glue    = var.platform == "glue"
  service = local.glue ? "glue.amazonaws.com" : "emr-serverless.amazonaws.com"
  logs    = local.glue ? "log-group:/aws-glue/*" : "log-group:/aws/emr-serverless/${var.name}"

  bucket = { for place in ["artifacts", "checkpoint"] : place => "arn:${local.partition}:s3:::${place == "artifacts" ? var.artifacts.bucket : var.checkpoint.bucket}" }
  key    = { artifacts = "${local.bucket.artifacts}/${var.artifacts.prefix}*", checkpoint = "${local.bucket.checkpoint}/${var.checkpoint.prefix}*" }

  storage = concat(
    [
      { Effect = "Allow", Action = ["s3:GetObject"], Resource = [local.key.artifacts] },
      { Effect = "Allow", Action = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"], Resource = [local.key.checkpoint] },
    ],
    [for place, given in { artifacts = var.artifacts, checkpoint = var.checkpoint } : {
      Effect                         = "Allow"
      Action                         = ["s3:ListBucket"]
      Resource                       = [local.bucket[place]]
      Condition                      = { StringLike = { "s3:prefix" = ["${given.prefix}*", trimsuffix(given.prefix, "/")] } }
    }],
  )

  logging = [
    { Effect = "Allow", Action = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"], Resource = ["${local.prefix.logs}:${local.logs}", "${local.prefix.logs}:${local.logs}:*"] },
    { Effect = "Allow", Action = ["logs:DescribeLogGroups"], Resource = ["${local.prefix.logs}:log-group:*"] },
  ]

  # Glue reaches the VPC of the registry and of Kafka by network interfaces, which it makes by the job's role. EC2 knows no
  # resources for the actions that describe.
  network = [
    { Effect = "Allow", Action = ["glue:GetConnection"], Resource = ["${local.prefix.glue}:catalog", "${local.prefix.glue}:connection/${var.name}*"] },
    { Effect = "Allow", Action = ["ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeRouteTables", "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcAttribute", "ec2:DescribeVpcEndpoints"], Resource = ["*"] },
    { Effect = "Allow", Action = ["ec2:CreateTags", "ec2:DeleteTags"], Resource = ["arn:${local.partition}:ec2:${local.region}:${local.account}:network-interface/*"] },
  ]

  start_and_stop = local.glue ? [
    { Effect = "Allow", Action = ["glue:BatchStopJobRun", "glue:GetJobRun", "glue:GetJobRuns", "glue:StartJobRun"], Resource = [var.platform_job_arn] },
    ] : [
    { Effect = "Allow", Action = ["emr-serverless:ListJobRuns", "emr-serverless:StartJobRun"], Resource = [var.platform_job_arn] },
    { Effect = "Allow", Action = ["emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"], Resource = ["${var.platform_job_arn}/jobruns/*"] },
  ]

  # Who starts a job run of EMR Serverless hands the role over to it.
  pass_role = [for given in [aws_iam_role.job.arn] : {
    Effect    = "Allow"
    Action    = ["iam:PassRole"]
    Resource  = [given]
    Condition = { StringEquals = { "iam:PassedToService" = [local.service] } }
  } if !local.glue]

  platform_statements = {
    job      = concat([for one in local.storage : jsonencode(one)], [for one in local.logging : jsonencode(one)], [for one in local.network : jsonencode(one) if local.glue])
    operator = concat([for one in local.start_and_stop : jsonencode(one)], [for one in local.pass_role : jsonencode(one)])
    reader   = []
  }
}
