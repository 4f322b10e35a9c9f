# The table, as `statestore/table.py` defines it: a test compares the two.

locals {
  # The range key of each index: from FIRST_ORDERED of statestore/table.py on, an index has its own.
  ranges = { for k in range(1, var.slots + 1) : "GSI_${k}" => k < 17 ? "GSI_SK" : "GSI_SK_${k}" }
  slots  = [for k in range(1, var.slots + 1) : "GSI_${k}"]

  # The table, and each of its indexes, scale on their own.
  scaled = var.provisioned == null ? {} : merge([
    for resource, kind in merge({ "table/${var.name}" = "table" }, { for slot in local.slots : "table/${var.name}/index/${slot}" => "index" }) : {
      for unit, range in { Read = var.provisioned.read, Write = var.provisioned.write } :
      "${resource} ${unit}" => { resource = resource, kind = kind, unit = unit, range = range }
    }
  ]...)
}

resource "aws_dynamodb_table" "state" {
  name                        = var.name
  billing_mode                = var.provisioned == null ? "PAY_PER_REQUEST" : "PROVISIONED"
  read_capacity               = try(var.provisioned.read.min, null)
  write_capacity              = try(var.provisioned.write.min, null)
  hash_key                    = "PK"
  range_key                   = "SK"
  deletion_protection_enabled = var.deletion_protection

  dynamic "attribute" {
    for_each = concat(["PK", "SK"], distinct(values(local.ranges)), local.slots)
    content {
      name = attribute.value
      type = "S"
    }
  }

  dynamic "global_secondary_index" {
    for_each = local.slots
    content {
      name            = global_secondary_index.value
      hash_key        = global_secondary_index.value
      range_key       = local.ranges[global_secondary_index.value]
      projection_type = "INCLUDE"

      non_key_attributes = ["_f", "_indexed", "_indexed_v", "_deleted"] # SHOWN of statestore/table.py

      read_capacity  = try(var.provisioned.read.min, null)
      write_capacity = try(var.provisioned.write.min, null)

      dynamic "on_demand_throughput" {
        for_each = var.on_demand_maximum[*]
        content {
          max_read_request_units  = on_demand_throughput.value.read
          max_write_request_units = on_demand_throughput.value.write
        }
      }
    }
  }

  dynamic "on_demand_throughput" {
    for_each = var.on_demand_maximum[*]
    content {
      max_read_request_units  = on_demand_throughput.value.read
      max_write_request_units = on_demand_throughput.value.write
    }
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  dynamic "server_side_encryption" {
    for_each = var.kms_key_arn[*]
    content {
      enabled     = true
      kms_key_arn = server_side_encryption.value
    }
  }

  lifecycle {
    # Autoscaling moves the capacity, and `statestore add-slots` adds indexes with their attributes.
    ignore_changes = [read_capacity, write_capacity, attribute, global_secondary_index]
  }
}

resource "aws_appautoscaling_target" "capacity" {
  for_each = local.scaled

  service_namespace  = "dynamodb"
  resource_id        = each.value.resource
  scalable_dimension = "dynamodb:${each.value.kind}:${each.value.unit}CapacityUnits"
  min_capacity       = each.value.range.min
  max_capacity       = each.value.range.max

  depends_on = [aws_dynamodb_table.state]
}

resource "aws_appautoscaling_policy" "capacity" {
  for_each = local.scaled

  name               = "DynamoDB${each.value.unit}CapacityUtilization:${each.value.resource}"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.capacity[each.key].service_namespace
  resource_id        = aws_appautoscaling_target.capacity[each.key].resource_id
  scalable_dimension = aws_appautoscaling_target.capacity[each.key].scalable_dimension

  target_tracking_scaling_policy_configuration {
    target_value = var.provisioned.target_percent
    predefined_metric_specification {
      predefined_metric_type = "DynamoDB${each.value.unit}CapacityUtilization"
    }
  }
}
