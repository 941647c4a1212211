# One identity for each role that uses the bucket, for its service account in the
# cluster. Routers never touch the bucket and have none.

locals {
  objects = "${var.bucket_arn}/${var.prefix}*"

  # The indexer that leads collects the garbage, so indexers may delete.
  actions = {
    indexer  = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
    searcher = ["s3:GetObject"]
    gc       = ["s3:GetObject", "s3:DeleteObject"]
  }
  key_actions = {
    indexer  = ["kms:Decrypt", "kms:GenerateDataKey"]
    searcher = ["kms:Decrypt"]
    gc       = ["kms:Decrypt"]
  }
  issuer = trimprefix(var.oidc_issuer, "https://")
}

resource "aws_iam_role" "this" {
  for_each = var.service_accounts

  name = "${var.name}-${each.key}"
  tags = var.tags
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Federated = var.oidc_provider_arn }
      Action    = "sts:AssumeRoleWithWebIdentity"
      Condition = {
        StringEquals = {
          "${local.issuer}:sub" = "system:serviceaccount:${var.namespace}:${each.value}"
          "${local.issuer}:aud" = "sts.amazonaws.com"
        }
      }
    }]
  })
}

resource "aws_iam_role_policy" "this" {
  for_each = var.service_accounts

  name = "bucket"
  role = aws_iam_role.this[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        { Effect = "Allow", Action = local.actions[each.key], Resource = [local.objects] },
        {
          Effect    = "Allow"
          Action    = ["s3:ListBucket"]
          Resource  = [var.bucket_arn]
          Condition = { StringLike = { "s3:prefix" = ["${var.prefix}*"] } }
        },
      ],
      var.kms_key_arn == null ? [] : [{ Effect = "Allow", Action = local.key_actions[each.key], Resource = [var.kms_key_arn] }],
    )
  })
}
