"""What screens show of parts that answer slowly: kept for some seconds, or asked for in portions."""
