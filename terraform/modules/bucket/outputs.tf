output "name" {
  description = "Name of the bucket"
  value       = aws_s3_bucket.this.id
}

output "arn" {
  description = "ARN of the bucket"
  value       = aws_s3_bucket.this.arn
}

output "url" {
  description = "URL of the bucket, for the chart's bucket.url"
  value       = "s3://${aws_s3_bucket.this.id}?region=${aws_s3_bucket.this.region}"
}
