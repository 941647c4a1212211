output "role_arns" {
  description = "ARN of each role"
  value       = { for role, r in aws_iam_role.this : role => r.arn }
}

output "annotations" {
  description = "Annotations of each service account, which give it its role"
  value       = { for role, r in aws_iam_role.this : role => { "eks.amazonaws.com/role-arn" = r.arn } }
}
