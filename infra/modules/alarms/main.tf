# Alarms over the metrics that the job writes into its log (docs/metrics.md), over the table's throttles, and over runs of the
# platform that failed.
#
# job_alarms.json is made from processor/job/metrics/metrics.py, and so are the rules for Prometheus in infra/prometheus.

locals {
  job   = { namespace = var.namespace, dimensions = { job = var.job } }
  table = { namespace = "AWS/DynamoDB", dimensions = { TableName = var.table } }

  # A gauge alarms after five minutes above its limit, a counter by its sum over five minutes.
  kinds = {
    gauge   = { statistic = "Maximum", period = 60, periods = 5 }
    counter = { statistic = "Sum", period = 300, periods = 1 }
  }

  # Where no limit has a name, only 0 makes sense.
  limits = merge({ "" = 0 }, var.limits)
  of_job = {
    for name, alarm in jsondecode(file("${path.module}/job_alarms.json")) : name => merge(local.job, local.kinds[alarm.kind], {
      metric  = alarm.metric
      limit   = local.limits[alarm.limit]
      silent  = alarm.silent
      meaning = alarm.meaning
    })
  }

  # DynamoDB writes these two only where it throttles.
  of_table = {
    for name in ["ReadThrottleEvents", "WriteThrottleEvents"] : name => merge(local.table, local.kinds.counter, {
      metric  = name
      limit   = var.limits.throttles
      silent  = "notBreaching"
      meaning = "DynamoDB throttles requests of the table."
    })
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = merge(local.of_job, local.of_table)

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.meaning
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.limit
  period              = each.value.period
  evaluation_periods  = each.value.periods
  treat_missing_data  = each.value.silent
  alarm_actions       = [var.topic_arn]
  ok_actions          = [var.topic_arn]
}

resource "aws_cloudwatch_event_rule" "failed_run" {
  name        = "${var.name}-failed-run"
  description = "A run of the job failed."
  event_pattern = var.platform == "glue" ? jsonencode({
    source      = ["aws.glue"]
    detail-type = ["Glue Job State Change"]
    detail      = { jobName = [var.platform_job], state = ["FAILED", "TIMEOUT"] }
    }) : jsonencode({
    source      = ["aws.emr-serverless"]
    detail-type = ["EMR Serverless Job Run State Change"]
    detail      = { applicationId = [var.platform_job], state = ["FAILED"] }
  })
}

resource "aws_cloudwatch_event_target" "failed_run" {
  rule = aws_cloudwatch_event_rule.failed_run.name
  arn  = var.topic_arn
}
