# Alarms over the metrics that the job writes into its log (docs/metrics.md), over the table's throttles, and over runs of the
# platform that failed.

locals {
  job   = { namespace = var.namespace, dimensions = { job = var.job } }
  table = { namespace = "AWS/DynamoDB", dimensions = { TableName = var.table } }

  # A gauge alarms after five minutes above its limit, a counter by its sum over five minutes.
  gauge   = { statistic = "Maximum", period = 60, periods = 5, silent = "notBreaching" }
  counter = { statistic = "Sum", period = 300, periods = 1, silent = "notBreaching" }

  alarms = {
    lag             = merge(local.job, local.gauge, { metric = "statestore_lag_seconds", limit = var.limits.lag_seconds, meaning = "The job is behind its topics." })
    unpublished     = merge(local.job, local.gauge, { metric = "statestore_oldest_unpublished_seconds", limit = var.limits.unpublished_seconds, meaning = "A change waits for its documents." })
    stopped_product = merge(local.job, local.gauge, { metric = "statestore_stopped_products", limit = 0, meaning = "The job stopped a product: `statestore status` says which and why." })
    stopped_walk    = merge(local.job, local.gauge, { metric = "statestore_stopped_walks", limit = 0, meaning = "The job stopped a walk: `statestore status` says which and why." })

    # The job writes its lease's age always: without it, the job is silent.
    lease = merge(local.job, local.gauge, { metric = "statestore_lease_age_seconds", limit = var.limits.lease_age_seconds, silent = "breaching", meaning = "The job does not renew its lease, or writes no metrics: it may be dead." })

    dead_letters = merge(local.job, local.counter, { metric = "statestore_dead_letters_total", limit = var.limits.dead_letters, meaning = "Records break their contract: `statestore rejects list` shows them." })
    throttles    = merge(local.job, local.counter, { metric = "statestore_throttles_total", limit = var.limits.throttles, meaning = "DynamoDB throttles requests of the table or of an index." })

    # DynamoDB writes these two only where it throttles.
    ReadThrottleEvents  = merge(local.table, local.counter, { metric = "ReadThrottleEvents", limit = var.limits.throttles, meaning = "DynamoDB throttles requests of the table." })
    WriteThrottleEvents = merge(local.table, local.counter, { metric = "WriteThrottleEvents", limit = var.limits.throttles, meaning = "DynamoDB throttles requests of the table." })
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = local.alarms

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
