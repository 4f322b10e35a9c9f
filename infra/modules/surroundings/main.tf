# What a job needs around it on every platform: its security group with the way to Kafka, and the topic of its alarms.

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
  security_group_id            = var.kafka_security_group_id
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
