# Alarms over the metrics that the job writes into its log (docs/metrics.md), over the table's throttles, and over runs of the
# platform that failed.

locals {
  minute = 60

  # A gauge alarms after five minutes above its limit. The job writes its lease's age always: without it, the job is silent.
  gauges = {
    lag             = { metric = "statestore_lag_seconds", limit = var.limits.lag_seconds, silent = "notBreaching", meaning = "The job is behind its topics." }
    unpublished     = { metric = "statestore_oldest_unpublished_seconds", limit = var.limits.unpublished_seconds, silent = "notBreaching", meaning = "A change waits for its documents." }
    stopped_product = { metric = "statestore_stopped_products", limit = 0, silent = "notBreaching", meaning = "The job stopped a product: `statestore status` says which and why." }
    stopped_walk    = { metric = "statestore_stopped_walks", limit = 0, silent = "notBreaching", meaning = "The job stopped a walk: `statestore status` says which and why." }
    lease           = { metric = "statestore_lease_age_seconds", limit = var.limits.lease_age_seconds, silent = "breaching", meaning = "The job does not renew its lease, or writes no metrics: it may be dead." }
  }

  # A counter alarms by its sum over five minutes.
  counters = {
    dead_letters = { metric = "statestore_dead_letters_total", limit = var.limits.dead_letters, meaning = "Records break their contract: `statestore rejects list` shows them." }
    throttles    = { metric = "statestore_throttles_total", limit = var.limits.throttles, meaning = "DynamoDB throttles requests of the table or of an index." }
  }
}

resource "aws_cloudwatch_metric_alarm" "gauge" {
  for_each = local.gauges

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.meaning
  namespace           = var.namespace
  metric_name         = each.value.metric
  dimensions          = { job = var.job }
  statistic           = "Maximum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.limit
  period              = local.minute
  evaluation_periods  = 5
  treat_missing_data  = each.value.silent
  alarm_actions       = [var.topic_arn]
  ok_actions          = [var.topic_arn]
}

resource "aws_cloudwatch_metric_alarm" "counter" {
  for_each = local.counters

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.meaning
  namespace           = var.namespace
  metric_name         = each.value.metric
  dimensions          = { job = var.job }
  statistic           = "Sum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.limit
  period              = 5 * local.minute
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = [var.topic_arn]
  ok_actions          = [var.topic_arn]
}

resource "aws_cloudwatch_metric_alarm" "table" {
  for_each = toset(["ReadThrottleEvents", "WriteThrottleEvents"])

  alarm_name          = "${var.name}-${each.value}"
  alarm_description   = "DynamoDB throttles requests of the table."
  namespace           = "AWS/DynamoDB"
  metric_name         = each.value
  dimensions          = { TableName = var.table }
  statistic           = "Sum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.limits.throttles
  period              = 5 * local.minute
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching" # DynamoDB writes this metric only where it throttles
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
